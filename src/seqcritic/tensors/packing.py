"""The unmasked tokens of a padded batch without the padding: step after step, the longest rows first.

At every step the rows that go on are then the first ones, and a loop over the steps works on ever fewer rows. Packed
arrays have one row for each unmasked token.

Shapes: B rows, T steps, N unmasked tokens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Packing(NamedTuple):
    """Where the unmasked tokens of a batch [B, T] stand in packed arrays [N, …]."""

    counts: tuple[int, ...]  # rows at each step
    order: Tensor  # [B], the rows, the longest first
    positions: Tensor  # [N], row · T + step
    previous: Tensor  # [N − counts[0]], the packed position of the same row's token before, from the second step on
    mirrored: (
        Tensor  # [N], the packed position of the token as far from its row's end as this one is from its beginning
    )

    @property
    def num_first(self) -> int:
        """How many tokens have none before them."""
        return self.counts[0]


def pack(mask: Tensor) -> Packing:
    """Return the packing of the tokens where mask [B, T] is True; in every row these come first."""
    length = mask.shape[1]
    # Stable: rows of one length keep the batch's order, so that equal batches are added up in the same order.
    lengths, order = mask.sum(dim=1).sort(descending=True, stable=True)
    # Sorted by length, the rows alive at a step are its first ones: a row's rank is its place within every step.
    alive = torch.arange(length, device=mask.device)[:, None] < lengths  # [T, B]
    counts = alive.sum(dim=1)
    offsets = counts.cumsum(dim=0) - counts  # [T], the packed position at which each step begins
    steps, rows = alive.nonzero(as_tuple=True)  # both [N], step after step
    first = int(counts[0])
    return Packing(
        # Steps at which all is padding are no steps of a loop.
        tuple(count for count in counts.tolist() if count),
        order,
        # `rows` are ranks; positions are of the batch as it was given.
        order[rows] * length + steps,
        offsets[steps[first:] - 1] + rows[first:],
        offsets[lengths[rows] - 1 - steps] + rows,
    )


class _Moved(torch.autograd.Function):
    """Gathers rows from an array, or scatters rows into zeros; no row occurs twice, so each is the other's gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, positions: Tensor, length: int | None) -> Tensor:
        """Take the rows at `positions`, or put rows to `positions` of an array of some length."""
        ctx.save_for_backward(positions)
        ctx.length, ctx.num_rows = length, len(rows)
        return _take(rows, positions) if length is None else _put(rows, positions, length)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Scatter the gradient of gathered rows, gather that of scattered ones."""
        (positions,) = ctx.saved_tensors
        moved = _put(gradient, positions, ctx.num_rows) if ctx.length is None else _take(gradient, positions)
        return moved, None, None


def gather_rows(rows: Tensor, positions: Tensor) -> Tensor:
    """Return the rows [N, …] at different positions [N] of an array."""
    selected: Tensor = _Moved.apply(rows, positions, None)  # type: ignore[no-untyped-call]
    return selected


def scatter_rows(rows: Tensor, positions: Tensor, length: int) -> Tensor:
    """Return an array [length, …] of zeros with rows [N, …] at different positions [N]."""
    array: Tensor = _Moved.apply(rows, positions, length)  # type: ignore[no-untyped-call]
    return array


def _take(rows: Tensor, positions: Tensor) -> Tensor:
    return rows.index_select(0, positions)


def _put(rows: Tensor, positions: Tensor, length: int) -> Tensor:
    shape = (length, *rows.shape[1:])
    array = rows.new_empty(shape) if len(rows) == length else rows.new_zeros(shape)
    return array.index_copy_(0, positions, rows)
