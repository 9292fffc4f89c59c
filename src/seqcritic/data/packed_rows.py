"""Many short sequences of token ids in one flat array, in files that are mapped into memory and never loaded.

Sequence k lies in tokens[offsets[k] : offsets[k + 1]].
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import torch

from seqcritic.data.vocabulary import END

Integers = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.int32]
OFFSET_BYTES = 8
# Linux maps 64 kB around every place that is read: after so many sequences the pages are given back.
SEQUENCES_BETWEEN_RELEASES = 1024


def token_type(num_tokens: int) -> str:
    """Return the smallest type that holds the ids of a vocabulary."""
    return "uint16" if num_tokens <= 1 << 16 else "int32"


class PackedRowsWriter:
    """Appends sequences to a file of tokens and a file of offsets."""

    def __init__(self, tokens: BinaryIO, offsets: BinaryIO, dtype: str) -> None:
        self._tokens = tokens
        self._offsets = offsets
        self._dtype = dtype
        self._total = 0
        offsets.write(bytes(OFFSET_BYTES))  # where the first sequence begins: 0

    def add(self, sequences: Sequence[Sequence[int]]) -> None:
        """Write some sequences."""
        lengths = np.fromiter((len(sequence) for sequence in sequences), np.int64, len(sequences))
        # Each end is the next sequence's beginning: one offset a sequence, and the first.
        ends = self._total + np.cumsum(lengths)
        flat = np.fromiter(chain.from_iterable(sequences), self._dtype, int(lengths.sum()))
        self._tokens.write(flat.tobytes())
        self._offsets.write(ends.tobytes())
        self._total += len(flat)


class PackedRows:
    """Sequences in memory, cheap to cut batches from."""

    def __init__(self, tokens: Tokens, lengths: Integers) -> None:
        self.tokens = tokens
        self.lengths = lengths
        self.starts = np.cumsum(lengths) - lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, chosen: npt.NDArray[np.int32]) -> PackedRows:
        """Return copies of the chosen sequences."""
        lengths = self.lengths[chosen]
        return PackedRows(self.tokens[flat_positions(self.starts[chosen], lengths)], lengths)

    def padded(self, chosen: Integers, end: int | None = END, padding: int = END) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the chosen sequences, each closed by an end token, as one padded tensor and its mask.

        `end` is None for sequences that are whole as they are.
        """
        lengths = self.lengths[chosen]
        closed = lengths if end is None else lengths + 1
        columns = np.arange(int(closed.max()))
        ids = np.full((len(chosen), len(columns)), padding, np.int64)
        # A mask is assigned row after row, the order in which `flat_positions` lists the tokens.
        ids[columns < lengths[:, None]] = self.tokens[flat_positions(self.starts[chosen], lengths)]
        if end is not None:
            ids[np.arange(len(chosen)), lengths] = end
        return torch.from_numpy(ids), torch.from_numpy(columns < closed[:, None])

    def sequences(self) -> list[Tokens]:
        """Return the sequences one by one."""
        ends = self.starts + self.lengths
        return [self.tokens[start:end] for start, end in zip(self.starts, ends, strict=True)]


class MappedPackedRows:
    """Sequences in two files; only what is asked for is read, and no page of the files stays resident."""

    def __init__(self, tokens: Path, offsets: Path, dtype: str) -> None:
        self._token_map, self._offset_map = _map_file(tokens), _map_file(offsets)
        self.tokens: Tokens = np.frombuffer(self._token_map, dtype)
        self.offsets: Integers = np.frombuffer(self._offset_map, np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, chosen: npt.NDArray[np.int32]) -> PackedRows:
        """Return copies of the chosen sequences; a ValueError says that the files are damaged."""
        starts = np.empty(len(chosen), np.int64)
        ends = np.empty(len(chosen), np.int64)
        for piece in self._pieces(chosen):
            starts[piece] = self.offsets[chosen[piece]]
            ends[piece] = self.offsets[chosen[piece] + 1]
        # Before anything is allocated: a damaged offset may stand for terabytes.
        if bool(((starts < 0) | (ends < starts) | (ends > len(self.tokens))).any()):
            raise ValueError("the offsets do not fit the tokens")
        lengths = ends - starts
        selected = PackedRows(np.empty(int(lengths.sum()), self.tokens.dtype), lengths)
        for piece in self._pieces(chosen):
            there = flat_positions(starts[piece], lengths[piece])
            selected.tokens[flat_positions(selected.starts[piece], lengths[piece])] = self.tokens[there]
        return selected

    def _pieces(self, chosen: npt.NDArray[np.int32]) -> Iterator[Integers]:
        """Yield the positions in `chosen` some at a time in the order of the file, for neighbours share pages."""
        in_order = np.argsort(chosen)  # results stand by their positions, so the order of reading is free
        for first in range(0, len(chosen), SEQUENCES_BETWEEN_RELEASES):
            yield in_order[first : first + SEQUENCES_BETWEEN_RELEASES]
            self._release()

    def _release(self) -> None:
        """Give the pages back that reading has mapped; the system's cache keeps them as long as it likes."""
        if sys.platform == "linux":
            self._token_map.madvise(mmap.MADV_DONTNEED)
            self._offset_map.madvise(mmap.MADV_DONTNEED)


def flat_positions(starts: Integers, lengths: Integers) -> Integers:
    """Return start, start + 1, … of each sequence, one after the other."""
    before = np.cumsum(lengths) - lengths
    # Counting on through all sequences, each moved from where it comes in the result to where it starts.
    all_places: Integers = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    return all_places


def _map_file(path: Path) -> mmap.mmap:
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
