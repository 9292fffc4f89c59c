"""What a corpus is prepared from: an archive, or a folder with archives or with the files themselves."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqcritic.corpora.collection import CHUNK, Collection
from seqcritic.errors import UserError
from seqcritic.progress import Bar

ARCHIVE_SUFFIXES = (".tgz", ".tar.gz", ".tar")
NUM_NAMES_SHOWN = 5
RECORD_FILE = "prepared.json"


@dataclass(frozen=True)
class Source:
    """The files to read: texts as they stand and archives; `others` are the names of files of no use."""

    path: Path
    texts: tuple[Path, ...]
    archives: tuple[Path, ...]
    others: tuple[str, ...] = ()


def find_source(path: Path, key_of: Callable[[str], str | None]) -> Source:
    """Look through an archive's name or a folder's files, without reading any of them."""
    if path.is_file():
        return source_of(path, [path], key_of)
    if not path.is_dir():
        raise UserError(f"source: no such file or folder: {path}; give the archive, or the folder with its files")
    texts, archives, others = [], [], []
    for file in _files_under(path):
        if key_of(file.name) is not None:
            texts.append(file)
        elif file.name.endswith(ARCHIVE_SUFFIXES):
            archives.append(file)
        else:
            others.append(str(file.relative_to(path)))
    return Source(path, tuple(texts), tuple(archives), tuple(others))


def source_of(path: Path, files: Iterable[Path], key_of: Callable[[str], str | None]) -> Source:
    """Return a source of named files: those of the corpus are texts, all others archives of them."""
    texts = {file: key_of(file.name) is not None for file in files}
    return Source(path, tuple(file for file in texts if texts[file]), tuple(file for file in texts if not texts[file]))


def collect(source: Source, key_of: Callable[[str], str | None], folder: Path) -> Collection:
    """Return the wanted files of a source by their keys; those from archives are copied to `folder`."""
    collection = Collection(key_of, folder)
    for path in source.texts:
        collection.add_text(path)
    for path in source.archives:
        collection.add_archive(path)
    collection.others[:0] = source.others
    return collection


def describe_files(source: Source) -> list[dict[str, Any]]:
    """Return name, size and digest of the files of a source: what they are, wherever they stand."""
    files = [*source.texts, *source.archives]
    return [{"name": path.name, "bytes": path.stat().st_size, "sha256": digest(path)} for path in files]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    result = hashlib.sha256()
    with path.open("rb") as file, Bar(f"checking {path.name}", unit="bytes") as bar:
        while chunk := file.read(CHUNK):
            result.update(chunk)
            bar.update(bar.done + len(chunk))
    return result.hexdigest()


def missing_files(source: Source, looked_for: str, others: list[str]) -> UserError:
    """Return the complaint about a source without the files of its corpus."""
    shown = ", ".join(others[:NUM_NAMES_SHOWN]) or "no other file"
    more = f" and {len(others) - NUM_NAMES_SHOWN:,} more" if len(others) > NUM_NAMES_SHOWN else ""
    return UserError(f"source: {source.path} has no {looked_for}; it has {shown}{more}")


def _files_under(root: Path) -> list[Path]:
    """Return the files under a folder, sorted, without hidden ones and without sets this command has prepared."""
    found: list[Path] = []
    # Unless it is given onerror, os.walk leaves out what it cannot read, without a word.
    for folder, folders, names in os.walk(root, onerror=_raise):
        if RECORD_FILE in names:
            folders.clear()  # in place, by which os.walk does not go on below
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(folder, name) for name in sorted(names) if not name.startswith(".")]
    return [path for path in found if path.is_file()]  # no pipes, and no links to what is gone


def _raise(error: OSError) -> None:
    raise error
