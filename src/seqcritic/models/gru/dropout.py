"""Dropout whose masks are drawn once for a sequence and held over its steps (Gal and Ghahramani 2016).

A policy with units dropped is a policy like any other, as long as nothing drops other units between drawing a
prediction and taking the gradient of its log-probability. So masks are drawn once for every example of an update, go
with the encoded memory wherever its rows go, and are the same in drawing and in scoring: an estimator that is unbiased
without dropout is unbiased for the policy with these masks, and its mean over masks for the mean over masks.

Who encodes without masks has no dropout: evaluation, search, targets. Nothing else switches it on or off.

Shapes: B examples, E embedding, F features of the output layer, K units between layers of the encoder.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.draws import draw_uniform


class Masks(NamedTuple):
    """What an encoder-decoder keeps of each row: 1 / (1 − rate) where a unit is kept, 0 where it is dropped."""

    encoder: Tensor  # [B, E], of the embeddings that the encoder reads
    decoder: Tensor  # [B, E], of the embeddings that the decoder reads
    features: Tensor  # [B, F], of the output layer's input
    between: Tensor  # [B, K], of what each further layer of the encoder reads, one layer after the other; K may be 0


def draw_masks(
    rate: float, sizes: tuple[int, int, int], num_rows: int, generator: torch.Generator, like: Tensor
) -> Masks | None:
    """Return masks for so many rows, of the type and on the device of `like`; None, nothing drawn, at rate 0.

    `sizes`: E of the embeddings, F of the features, K of what stands between the encoder's layers.
    """
    if rate == 0:
        return None
    embedding, features, between = sizes
    kept = rate <= draw_uniform(generator, 2 * embedding + features + between, num_rows).T  # [B, 2E + F + K]
    ends = [embedding, 2 * embedding, 2 * embedding + features]
    return Masks(*(kept.to(like.device, like.dtype) / (1 - rate)).tensor_split(ends, dim=1))


def masked(values: Tensor, mask: Tensor | None, rows: Tensor | None = None) -> Tensor:
    """Return values [N, F] of the given rows [N], or [B, …, F] of all, times their rows' mask [B, F]; as they are
    without one."""
    if mask is None:
        return values
    if rows is not None:
        return values * mask[rows]
    return values * mask.view(len(mask), *[1] * (values.dim() - 2), mask.shape[1])
