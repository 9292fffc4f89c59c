"""The files of the prepared sets while they are written: one sentence a line, counted and digested."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

SPLITS = ("train", "valid", "test")


class _LineFile:
    def __init__(self, path: Path) -> None:
        self.num_lines = 0
        self._path = path
        self._digest = hashlib.sha256()  # of the text: packed files depend on zlib's version
        self._raw = path.open("wb")
        # No name and no time in the header: equal text makes equal files.
        packed = gzip.GzipFile("", "wb", 6, self._raw, mtime=0) if path.suffix == ".gz" else None
        # Buffered: a call into gzip for each line would cost more than most lines are worth.
        self._stream = self._raw if packed is None else io.BufferedWriter(packed, 1 << 16)

    def write(self, line: str) -> None:
        data = f"{line}\n".encode()
        self._digest.update(data)
        self._stream.write(data)
        self.num_lines += 1

    def finish(self) -> dict[str, int | str]:
        """Bring the file to the disk and return what it holds."""
        # Closing writes gzip's end; the file beneath stays open, since it was handed to gzip.
        if self._stream is not self._raw:
            self._stream.close()
        self._raw.flush()
        # The record that will speak for this file must not reach the disk before it.
        os.fsync(self._raw.fileno())
        self._raw.close()
        return {
            "lines": self.num_lines,
            "bytes": self._path.stat().st_size,
            "sha256_of_text": self._digest.hexdigest(),
        }

    def abandon(self) -> None:
        """Close the file of sets that do not come to be; what is in it does not matter any more."""
        for stream in (self._stream, self._raw):
            with suppress(OSError):
                stream.close()


class Sets:
    """Writes sentences to `folder/SPLIT.SIDE` files, which come into being with their first sentence."""

    def __init__(self, folder: Path, sides: Sequence[str]) -> None:
        self.folder = folder
        self.sides = sides
        self._files: dict[str, _LineFile] = {}

    def __enter__(self) -> Sets:
        self.folder.mkdir(parents=True)  # not exist_ok: never among other sets
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.abandon()

    def write(self, split: str, *sentences: str) -> None:
        """Append a sentence to each side of a split."""
        for side, sentence in zip(self.sides, sentences, strict=True):
            name = f"{split}.{side}"
            if name not in self._files:
                self._files[name] = _LineFile(self.folder / name)
            self._files[name].write(sentence)

    def count(self, split: str) -> int:
        """Return how many sentences or pairs a split has."""
        name = f"{split}.{self.sides[0]}"
        return self._files[name].num_lines if name in self._files else 0

    def finish(self) -> dict[str, dict[str, int | str]]:
        """Bring all files to the disk and return what each holds."""
        return {name: file.finish() for name, file in self._files.items()}


def file_names(sides: Sequence[str]) -> list[str]:
    """Return the names of all files the sets can have."""
    return [f"{split}.{side}" for split in SPLITS for side in sides]
