"""English prose that comes with the package: sentences of the documentation of Python, NumPy and PyTorch.

The text is frozen in one file, so that results on two machines are comparable whatever is installed there. `NOTICE`
beside it says where the sentences come from and under which licences.
"""

from __future__ import annotations

import lzma
from pathlib import Path

FILE = Path(__file__).with_name("embedded.txt.xz")
SPLITS = ("train", "valid", "test")  # in the order of the file, an empty line between them


def embedded_sentences(split: str) -> list[str]:
    """Return the sentences of one split; the splits have none in common."""
    parts = lzma.decompress(FILE.read_bytes()).decode().split("\n\n")
    return parts[SPLITS.index(split)].split("\n")
