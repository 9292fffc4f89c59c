"""Something of every counted token of a batch, one row each, in the order of a packing.

Shapes: B sequences, T tokens, N counted tokens, F numbers of each.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.tensors.packing import put_rows, take_rows


class Packed(NamedTuple):
    """Rows [N, F] and where they belong in a batch [B, T]."""

    rows: Tensor  # [N, F]
    places: Tensor  # [N], sequence · T + step
    shape: tuple[int, int]  # B, T

    @staticmethod
    def of(padded: Tensor, mask: Tensor) -> Packed:
        """Return the rows of [B, T, F] where the mask [B, T] is True."""
        places = mask.reshape(-1).nonzero()[:, 0]
        batch, length = mask.shape
        return Packed(take_rows(padded.flatten(0, 1), places), places, (batch, length))

    def padded(self) -> Tensor:
        """Return the rows in [B, T, F], zeros elsewhere."""
        return self.spread(self.rows)

    def detach(self) -> Packed:
        """Return the same rows as constants."""
        return self._replace(rows=self.rows.detach())

    def first(self) -> Tensor:
        """Return the rows of first tokens, one for each sequence that has any."""
        return self.rows[self.places % self.shape[1] == 0]

    def take(self, per_token: Tensor) -> Tensor:
        """Return what the counted tokens have of [B, T, …], [N, …]."""
        return per_token.flatten(0, 1)[self.places]

    def spread(self, per_row: Tensor) -> Tensor:
        """Return [N, …] in [B, T, …], zeros elsewhere."""
        batch, length = self.shape
        return put_rows(per_row, self.places, batch * length).view(batch, length, *per_row.shape[1:])

    def part(self, first: int, last: int, length: int) -> Packed:
        """Return the sequences from `first` up to, without, `last`, none of which has more than `length` tokens."""
        width = self.shape[1]
        chosen = ((self.places >= first * width) & (self.places < last * width)).nonzero()[:, 0]
        places = self.places[chosen]
        moved = (places // width - first) * length + places % width
        return Packed(take_rows(self.rows, chosen), moved, (last - first, length))

    def align(self, other: Packed) -> Tensor:
        """Return the rows [N, F] of another packed batch of the same tokens in the order of this one."""
        assert self.shape == other.shape, "of the same batch"
        if torch.equal(self.places, other.places):
            return other.rows
        assert len(self.places) == len(other.places), "of the same tokens"
        rows = other.places.new_empty(self.shape[0] * self.shape[1])
        rows[other.places] = torch.arange(len(other.places), device=rows.device)
        return take_rows(other.rows, rows[self.places])
