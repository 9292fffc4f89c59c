"""Arrays that take long to make, kept one a file below the cache and mapped into memory when they are asked for.

What an array is made of names its file, so that it is found again wherever the run is. A file appears whole; two
processes that make the same one write the same bytes. A digest behind the array tells a damaged file, which is made
again.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqcritic.files import cache_fault

DIGEST_BYTES = 16


class ArrayStore:
    """Arrays by name, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: set[str] = set()  # whose digests this process has compared

    def get(self, name: str) -> npt.NDArray[Any] | None:
        """Return an array, mapped and not to be written to; None where it is absent or damaged."""
        path = self._path(name)
        try:
            # The header says how long the array is: the digest behind it is not mapped.
            found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            if name not in self._known:
                with path.open("rb") as stream:
                    stream.seek(-DIGEST_BYTES, os.SEEK_END)
                    if stream.read() != _digest(found):
                        return None
                self._known.add(name)
        # What np.load and the seek raise for a file that is absent, cut short or empty.
        except (OSError, ValueError, EOFError):
            return None
        return found

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Keep an array."""
        path = self._path(name)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
                np.save(stream, array, allow_pickle=False)
                stream.write(_digest(array))
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise cache_fault(self.folder.parent, error) from None

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}.npy"  # a folder of thousands is slow on some disks


def _digest(array: npt.NDArray[Any]) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=DIGEST_BYTES).digest()
