"""Something of every unmasked token of a batch, one row each, in the order of a packing.

Shapes: B sequences, T tokens, N unmasked tokens, F values of each.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.tensors.packing import gather_rows, scatter_rows


class Packed(NamedTuple):
    """Rows [N, F] and where they belong in a batch [B, T]."""

    rows: Tensor  # [N, F]
    positions: Tensor  # [N], sequence · T + step
    shape: tuple[int, int]  # B, T

    @staticmethod
    def of(padded: Tensor, mask: Tensor) -> Packed:
        """Return the rows of [B, T, F] where the mask [B, T] is True."""
        # Rising, so row after row: `align` finds its way between this order and the one of a packing.
        positions = mask.reshape(-1).nonzero()[:, 0]
        batch, length = mask.shape
        return Packed(gather_rows(padded.flatten(0, 1), positions), positions, (batch, length))  # [B · T, F] to [N, F]

    def padded(self) -> Tensor:
        """Return the rows in [B, T, F], zeros elsewhere."""
        return self.spread(self.rows)

    def detach(self) -> Packed:
        """Return the same rows as constants."""
        return self._replace(rows=self.rows.detach())

    def first(self) -> Tensor:
        """Return the rows of first tokens, one for each sequence that has any."""
        return self.rows[self.positions % self.shape[1] == 0]  # step 0

    def take(self, per_token: Tensor) -> Tensor:
        """Return what the unmasked tokens have of [B, T, …], [N, …]."""
        return per_token.flatten(0, 1)[self.positions]

    def spread(self, per_row: Tensor) -> Tensor:
        """Return [N, …] in [B, T, …], zeros elsewhere."""
        batch, length = self.shape
        return scatter_rows(per_row, self.positions, batch * length).view(batch, length, *per_row.shape[1:])

    def part(self, first: int, last: int, length: int) -> Packed:
        """Return the sequences from `first` up to, without, `last`, none of which has more than `length` tokens."""
        width = self.shape[1]
        chosen = ((self.positions >= first * width) & (self.positions < last * width)).nonzero()[:, 0]
        positions = self.positions[chosen]
        # The step stays; the sequence counts from `first`, and rows are `length` apart instead of `width`.
        moved = (positions // width - first) * length + positions % width
        return Packed(gather_rows(self.rows, chosen), moved, (last - first, length))

    def align(self, other: Packed) -> Tensor:
        """Return the rows [N, F] of another packed batch of the same tokens in the order of this one."""
        assert self.shape == other.shape, "of the same batch"
        # Mostly both come from one packing, and then no row has to be copied.
        if torch.equal(self.positions, other.positions):
            return other.rows
        assert len(self.positions) == len(other.positions), "of the same tokens"
        # Where in `other` each position of the batch stands. What is left unwritten is masked, and never read.
        rows = other.positions.new_empty(self.shape[0] * self.shape[1])
        rows[other.positions] = torch.arange(len(other.positions), device=rows.device)
        return gather_rows(other.rows, rows[self.positions])
