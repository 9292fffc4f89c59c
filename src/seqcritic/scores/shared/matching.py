"""Which tokens of predictions and references are equal.

Shapes: B examples, T prediction tokens, R references of an example, U reference tokens.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from seqcritic.contracts.score import Scorable


def token_matches(predictions: Tensor, references: Tensor, reference_lengths: Tensor, unknown: int | None) -> Tensor:
    """Return [B, T, U], True where a prediction's token equals a reference's: never on padding or unknown tokens."""
    # By length, not by id: the id that pads may be the one that ends, and neither may match.
    positions = torch.arange(references.shape[1], device=references.device)
    known = positions < reference_lengths[:, None]
    if unknown is not None:
        known &= references != unknown
    return (predictions[:, :, None] == references[:, None, :]) & known[:, None, :]


def equal_positions(references: Tensor, reference_lengths: Tensor, unknown: int | None) -> Tensor:
    """Return [B, R, U, R · U], True where two positions of references [B, R, U] hold one token that can be matched."""
    positions = torch.arange(references.shape[2], device=references.device)
    known = (positions < reference_lengths[:, :, None]).flatten(1)  # [B, R · U]
    tokens = references.flatten(1)
    if unknown is not None:
        known &= tokens != unknown
    equal = (tokens[:, :, None] == tokens[:, None]) & known[:, :, None] & known[:, None]
    # Rows belong to one reference each, columns to all of them.
    return equal.view(*references.shape, -1)


def tokens_of_all(batch: Scorable, of_reference: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return a table [B, R, T, R · U + 1]: by each reference an entry of every token of any, and of another.

    `of_reference` takes references [B, U] and their lengths [B] and returns what they say of their own tokens and,
    last, of a token they lack [B, T, U + 1].
    """
    pairs = list(zip(batch.references.unbind(1), batch.reference_lengths.unbind(1), strict=True))
    tables = [of_reference(references, lengths) for references, lengths in pairs]
    # Its own tokens are all tokens that there are.
    if len(pairs) == 1:
        return tables[0][:, None]
    tokens, width = batch.references.flatten(1), batch.references.shape[2]  # [B, R · U]
    positions = torch.arange(width, device=tokens.device)
    mask = (positions < batch.reference_lengths[:, :, None]).flatten(1)
    found = []
    for (references, lengths), table in zip(pairs, tables, strict=True):
        # [B, R · U, U]: where this reference has the token that stands at a position of any.
        equal = (tokens[:, :, None] == references[:, None]) & mask[:, :, None] & (positions < lengths[:, None])[:, None]
        # Equal tokens have equal entries, so that the first will do.
        columns = torch.where(equal.any(dim=2), equal.int().argmax(dim=2), width)
        # The added last entry is the token that no reference has: it reads the table's last column.
        columns = torch.nn.functional.pad(columns, (0, 1), value=width)
        found.append(table.gather(2, columns[:, None].expand(-1, table.shape[1], -1)))
    return torch.stack(found, dim=1)
