"""The wanted files of archives and folders, brought to where they can be read in any order.

Tar archives are read as a stream, so pairs of files cannot be read side by side in them: wanted members are copied to a
working folder under their last name only. Nothing is ever written under a path of the archive's choosing.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, cast

from seqcritic.errors import UserError
from seqcritic.progress import Bar

CHUNK = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"


class Collection:
    """Files by the key a corpus gives to their names; names without a key are remembered as `others`."""

    def __init__(self, key_of: Callable[[str], str | None], folder: Path) -> None:
        self.files: dict[str, Path] = {}
        self.others: list[str] = []
        self._key_of = key_of
        self._folder = folder
        self._origins: dict[str, str] = {}

    def add_text(self, path: Path) -> None:
        """Take a file where it stands."""
        key = self._key_of(path.name)
        if key is not None:
            self._claim(key, str(path))
            self.files[key] = path

    def add_archive(self, archive: Path) -> None:
        """Copy the wanted members of a tar archive, plain or gzipped, to the working folder."""
        try:
            with _open(archive) as stream:
                # A stream, "r|": compressed archives cannot be sought in without reading them again from the beginning.
                with tarfile.open(fileobj=stream, mode="r|") as tar:
                    for member in tar:
                        self._add_member(archive, tar, member)
                # gzip compares its checksum with the text only where the text ends.
                while stream.read(CHUNK):
                    pass
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(
                f"source: {archive}: damaged, or not a tar archive ({error}); give the archive as distributed, "
                "or the folder of its files"
            ) from None

    def _add_member(self, archive: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            raise UserError(
                f"source: {archive} has a member '{member.name}', outside of its own folder; "
                "it is not the archive as distributed"
            )
        # Hidden files, as macOS adds them beside others, end like these and would be taken for text.
        if not member.isfile() or any(part.startswith(".") for part in path.parts):
            return
        key = self._key_of(path.name)
        if key is None:
            self.others.append(member.name)
            return
        self._claim(key, f"{archive}:{member.name}")
        self._folder.mkdir(parents=True, exist_ok=True)
        target = self._folder / path.name
        content = tar.extractfile(member)
        assert content is not None  # as it is for every regular file
        with content, target.open("xb") as copy, Bar(f"reading {archive.name}: {path.name}", unit="bytes") as bar:
            while chunk := content.read(CHUNK):
                bar.update(bar.done + copy.write(chunk))
        self.files[key] = target

    def _claim(self, key: str, origin: str) -> None:
        if key in self._origins:
            raise UserError(
                f"source: found twice: {self._origins[key]} and {origin}; name the archive or folder to take"
            )
        self._origins[key] = origin


def _open(archive: Path) -> IO[bytes]:
    with archive.open("rb") as file:
        # By its first bytes, not by its name: a .tgz may have been unpacked to a plain tar on its way.
        packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return cast("IO[bytes]", gzip.open(archive, "rb")) if packed else archive.open("rb")
