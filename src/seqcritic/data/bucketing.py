"""The order in which training visits pairs: every pair once an epoch, in batches of pairs of like length.

An epoch of n pairs in batches of `size` has ⌈n / size⌉ batches. Their sizes differ by at most one, so that no epoch
ends with a batch of a few pairs. The pairs are permuted; windows of 100 batches are sorted by length, cut into
batches, and the batches shuffled. All of it is drawn from generators seeded by (seed, epoch) and (seed, epoch,
window): the only state is the number of examples consumed, and every batch is the same however it is reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import ENDS_AND_PADS, Batch, RawTexts
from seqcritic.data.corruption import derive_seed
from seqcritic.data.packed_rows import Integers, PackedRows
from seqcritic.data.token_cache import EncodedPairs
from seqcritic.errors import UserError

BATCHES_IN_WINDOW = 100


@dataclass(frozen=True)
class EpochPosition:
    """A batch of the stream: its epoch and its number in the epoch."""

    epoch: int
    batch: int


@dataclass(frozen=True)
class Window:
    """Copies of the pairs of some batches, and which of them belong to which batch."""

    source: PackedRows
    target: PackedRows
    batches: list[Integers]
    rows: npt.NDArray[np.int32]  # which of all pairs they are


class Buckets:
    """Training batches of encoded pairs; `texts` finds the raw ones by their positions among the pairs."""

    def __init__(
        self,
        pairs: EncodedPairs,
        num_tokens: tuple[int, int],
        texts: RawTexts | None = None,
        special: SpecialTokens = ENDS_AND_PADS,
        sources_end: bool = True,
    ) -> None:
        """`special` closes and pads targets, and sources too unless these are stored with their own ends."""
        self.pairs = pairs
        self._special = special
        self._source_end = special.end[0] if sources_end else None
        self._num_tokens = num_tokens
        self._texts = texts
        self._order: tuple[tuple[int, int], npt.NDArray[np.int32]] | None = None
        self._window: tuple[tuple[int, int, int, int], Window] | None = None

    def num_batches(self, size: int) -> int:
        """Return how many batches an epoch has."""
        return -(-len(self.pairs) // size)

    def locate(self, position: int, size: int) -> EpochPosition:
        """Return the batch that begins after `position` examples, every batch before it counted as `size`."""
        return EpochPosition(*divmod(position // size, self.num_batches(size)))

    def batch(self, position: int, size: int, seed: int) -> Batch:
        """Return the batch of the seeded stream that begins after `position` examples."""
        located = self.locate(position, size)
        index, offset = divmod(located.batch, BATCHES_IN_WINDOW)
        window = self.window(seed, located.epoch, index, size)
        chosen = window.batches[offset]
        rows = torch.from_numpy(window.rows[chosen].astype(np.int64))
        texts = None if self._texts is None else replace(self._texts, rows=rows)
        padding = self._special.padding
        sources = window.source.padded(chosen, self._source_end, padding)
        return Batch(*sources, *window.target.padded(chosen, self._special.end[0], padding), texts)

    def order(self, seed: int, epoch: int) -> npt.NDArray[np.int32]:
        """Return the permutation of all pairs that one epoch follows."""
        if self._order is None or self._order[0] != (seed, epoch):
            # Four bytes a pair and shuffled in place: there may be tens of millions.
            order = np.arange(len(self.pairs), dtype=np.int32)
            np.random.default_rng(derive_seed(seed, "order", epoch)).shuffle(order)
            self._order = ((seed, epoch), order)
        return self._order[1]

    def window(self, seed: int, epoch: int, index: int, size: int) -> Window:
        """Return a window of an epoch; the last one asked for is kept."""
        key = (seed, epoch, index, size)
        if self._window is None or self._window[0] != key:
            chosen, ends = self._members(seed, epoch, index, size)
            source, target = self._take(chosen)
            # Sources of one target length up, of the next down: a batch on the border holds long ones of both.
            turning = np.where(target.lengths % 2 == 0, source.lengths, -source.lengths)
            # Pairs of like length go together: padding is computed and thrown away.
            by_length = np.lexsort((turning, target.lengths))
            batches = np.split(by_length, ends[:-1])
            # Else an update would see only short, then only long pairs.
            shuffled = np.random.default_rng(derive_seed(seed, "window", epoch, index)).permutation(len(batches))
            self._window = (key, Window(source, target, [batches[number] for number in shuffled], chosen))
        return self._window[1]

    def _members(self, seed: int, epoch: int, index: int, size: int) -> tuple[npt.NDArray[np.int32], Integers]:
        """Return the pairs of a window and where its batches end among them."""
        first = index * BATCHES_IN_WINDOW
        last = min(first + BATCHES_IN_WINDOW, self.num_batches(size))
        # Batches of an epoch differ by at most one pair, so that no last batch is a small one.
        edges = np.arange(first, last + 1, dtype=np.int64) * len(self.pairs) // self.num_batches(size)
        return self.order(seed, epoch)[edges[0] : edges[-1]], edges[1:] - edges[0]

    def _take(self, chosen: npt.NDArray[np.int32]) -> tuple[PackedRows, PackedRows]:
        try:
            sides = (self.pairs.source.take(chosen), self.pairs.target.take(chosen))
        except ValueError:
            raise self._fault() from None
        for side, num_tokens in zip(sides, self._num_tokens, strict=True):
            # A flipped byte in the middle of a file is found here: an id outside the vocabulary would end deep in
            # torch.
            if int(side.tokens.max()) >= num_tokens or int(side.lengths.min()) < 1:
                raise self._fault()
        return sides

    def _fault(self) -> UserError:
        return UserError(f"{self.pairs.folder}: the encoded text is damaged; delete the folder, it is made again")
