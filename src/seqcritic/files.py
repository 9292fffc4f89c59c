"""What is written to disk: digests, files that are whole or not there, locks, and the folder of caches.

By a digest what is read back is known to be what was written.

A digest stands in the file that it speaks for, so that no kill can come between the two: as the last field of a JSON
object, as the first line of a YAML file. Result files that 0.1 published have none and are taken as they are.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqcritic.errors import UserError

FIELD = "digest"
HEADER = "# written by seqcritic, digest "
MISMATCH = "its digest is not the one written with it"


def digest(content: bytes) -> str:
    """Return the digest of some bytes."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the digest of its other fields as its last."""
    # The digest never counts itself: a record that is sealed twice has one digest.
    content = {name: value for name, value in record.items() if name != FIELD}
    return {**content, FIELD: digest(json.dumps(content).encode())}


def unseal(record: Any, required: bool = False) -> Any:
    """Return a JSON value without its digest; ValueError where that is another's, or lacks and is required.

    The digest is of the values: Python writes what it has read from JSON as the same text again.
    """
    if not isinstance(record, dict) or FIELD not in record:
        if required:
            raise ValueError("it has no digest")
        return record
    if seal(record)[FIELD] != record[FIELD]:
        raise ValueError(MISMATCH)
    return {name: value for name, value in record.items() if name != FIELD}


def seal_text(text: str) -> str:
    """Return a text, of YAML, beneath a comment with its digest."""
    return f"{HEADER}{digest(text.encode())}\n{text}"


def is_sealed(text: str) -> bool:
    """Tell whether a text begins as those that `seal_text` returns."""
    return text.startswith(HEADER)


def unseal_text(text: str) -> str:
    """Return a text without the comment of `seal_text`; ValueError where the digest is another's.

    A damaged comment could hide the line beneath it, so any first line that is one must be whole.
    """
    if not text.startswith("#"):
        return text
    head, _, rest = text.partition("\n")
    if not re.fullmatch(re.escape(HEADER) + "[0-9a-f]{32}", head) or head != f"{HEADER}{digest(rest.encode())}":
        raise ValueError(MISMATCH)
    return rest


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        # Without it a rename may reach the disk before the content does.
        os.fsync(stream.fileno())


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that whoever reads it, after a kill too, finds all of it or what was there before."""
    # The process in the name: two that write the same file do not write into each other's.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write_synced(temporary, content.encode() if isinstance(content, str) else content)
        temporary.replace(path)  # atomic: both are in one folder
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Wait until the disk has what was created, renamed and removed in a folder."""
    # A folder is a file to fsync too, and renames in it are its content.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def acquire_lock(path: Path) -> int:
    """Lock a folder, or a file that is made for it, until `os.close` of what is returned or the end of the process.

    BlockingIOError where another process holds it.
    """
    # A file is made for it, and left there: removing it could take the name from under another's lock.
    descriptor = os.open(path, os.O_RDONLY) if path.is_dir() else os.open(path, os.O_CREAT | os.O_RDWR, mode=0o666)
    try:
        # Held by the open file: the kernel lets go of it however the process ends.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def default_cache_directory() -> Path:
    """Return where files that can be made again are kept, compiled kernels and encoded training text.

    `$SEQCRITIC_CACHE`, else the folder seqcritic in `$XDG_CACHE_HOME`, else in ~/.cache.
    """
    if own := os.environ.get("SEQCRITIC_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared, "seqcritic")
    try:
        return Path.home() / ".cache" / "seqcritic"
    except RuntimeError:
        raise UserError("no home folder for the cache; set SEQCRITIC_CACHE to a folder for it") from None


def cache_fault(cache: Path, error: OSError) -> UserError:
    """Return the error for a cache that cannot be written."""
    return UserError(
        f"cannot write the cache {cache}: {error.strerror or error}; set SEQCRITIC_CACHE to a folder with space"
    )
