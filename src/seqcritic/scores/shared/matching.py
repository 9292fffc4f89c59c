"""Which tokens of predictions and references are equal.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor


def token_matches(predictions: Tensor, references: Tensor, reference_lengths: Tensor, unknown: int | None) -> Tensor:
    """Return [B, T, U], True where a prediction's token equals a reference's: never on padding or unknown tokens."""
    places = torch.arange(references.shape[1], device=references.device)
    known = places < reference_lengths[:, None]
    if unknown is not None:
        known &= references != unknown
    return (predictions[:, :, None] == references[:, None, :]) & known[:, None, :]


def equal_places(references: Tensor, reference_lengths: Tensor, unknown: int | None) -> Tensor:
    """Return [B, U, U], True where two places of a reference hold the same token that can be matched."""
    matches = token_matches(references, references, reference_lengths, unknown)
    return matches & matches.transpose(1, 2)
