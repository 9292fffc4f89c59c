"""The least edit distance that any completion of a prefix can have, after every next token.

    d*(a) = min over completions C of d(Ŷ_1..t-1 a C, Y),   Q*(a) = −d*(a)

One row of the distance's table says it all: with D_j the distance of the prefix to the first j tokens of the reference,
the least cost of going on is min_j D_j, to be had by going on with y_{j+1}, … from any j that attains it. Every other
token costs one more; the end token costs D_|Y| at once. An unknown token of the reference matches nothing, so that it
costs one whatever is said in its place. Of several references the nearest counts, as in the score; with
`score.normalise` each distance is divided by the length of its reference.

`optimal-completion` imitates these values; a critic may learn what they are off (`critic.residual_on`).

Shapes: B sequences, T tokens, R references of each, U reference tokens, N unmasked tokens, V vocabulary, C columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.score import Scorable
from seqcritic.scores.edit_distance import NEVER, EditDistanceScore, distance_table
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns


def completion_distances(
    before: Packed,
    references: Tensor,
    lengths: Tensor,
    num_tokens: int,
    special: SpecialTokens,
    unknown: int | None,
    columns: Columns | None = None,
) -> Tensor:
    """Return d* [N, V] of every next token at the unmasked positions of predictions, to one reference [B, U] each.

    `before`: D [N, U + 1] of the prefixes before these positions. With columns, among which all tokens of
    references must be, d* [N, C + 1] of these and of all others.
    """
    table = before.rows  # [N, U + 1]
    of_row = before.positions // before.shape[1]  # the sequence of each position
    references, lengths = references[of_row], lengths[of_row, None]  # [N, U], [N, 1]
    positions = torch.arange(table.shape[1], device=table.device)  # [U + 1]
    inside = positions[:-1] < lengths  # [N, U]
    matched = inside if unknown is None else inside & (references != unknown)
    # What the unknown tokens after the first j will cost, whatever is said in their place.
    lost = torch.nn.functional.pad((inside & ~matched).flip(1).cumsum(dim=1).flip(1), (0, 1)).to(table.dtype)
    # Any token can stand for y_{j+1} as a wrong one, or against nothing, at the cost of one.
    substituted = torch.where(inside, table[:, :-1] + lost[:, 1:], NEVER).amin(dim=1)
    inserted = torch.where(positions <= lengths, table + lost, NEVER).amin(dim=1)
    of_others = torch.minimum(substituted, inserted) + 1
    right = torch.where(matched, table[:, :-1] + lost[:, 1:], NEVER)
    end, width = torch.tensor(special.end, device=table.device), num_tokens
    if columns is not None:  # what is not matched costs NEVER: it may stand with the rest
        references, end, width = columns.columns_of(references), columns.columns_of(end), len(columns.ids) + 1
    distances = of_others[:, None].repeat(1, width).scatter_reduce_(1, references, right, "amin")
    # Ending adds nothing any more: the distance of the prefix to the whole reference, in place of what stood there.
    distances[:, end] = table.gather(1, lengths)
    return distances


def optimal_values(
    score: EditDistanceScore,
    evaluated: Scorable,
    mask: Tensor,
    num_tokens: int,
    special: SpecialTokens,
    columns: Columns | None = None,
) -> Packed:
    """Return Q* [N, V], up to a constant of each position, where the mask [B, T] of the evaluated predictions is True.

    With columns, Q* [N, C + 1] of these and of all others.
    """
    found: Tensor | None = None
    for references, lengths in zip(evaluated.references.unbind(1), evaluated.reference_lengths.unbind(1), strict=True):
        table = distance_table(evaluated.predictions[:, :-1], references, score.unknown)  # [B, T, U + 1]
        rows = Packed.of(table, mask)
        distances = completion_distances(rows, references, lengths, num_tokens, special, score.unknown, columns)
        values = -distances.to(torch.get_default_dtype())
        if score.normalise:
            values = 1 + values / lengths.clamp(min=1)[rows.positions // rows.shape[1], None]
        found = values if found is None else torch.maximum(found, values)
    assert found is not None, "an example has a reference"
    return rows._replace(rows=found)
