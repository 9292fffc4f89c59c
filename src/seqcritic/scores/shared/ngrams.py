"""n-grams of predictions in their references, for all prefixes and a whole batch at once.

Nothing is recounted from prefix to prefix. The n-gram starting at a position of the prediction is correct if it occurs
earlier in the prediction less often than in the reference, which clips the counts; a running sum does the rest. Two
n-grams are equal if their first and their last n − 1 tokens are, so equality grows from tokens to longer ones by one
`and` of shifted tables: exact for any vocabulary, without numbering n-grams.

Shapes: B examples, T prediction tokens, R references, U reference tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.score import Scorable
from seqcritic.scores.shared.matching import token_matches


def all_matches(batch: Scorable, unknown: int | None) -> Tensor:
    """Return [B, R, T, U], True where a prediction's token equals one of a reference; `unknown` ones never do."""
    pairs = zip(batch.references.unbind(1), batch.reference_lengths.unbind(1), strict=True)
    return torch.stack([token_matches(batch.predictions, *pair, unknown) for pair in pairs], dim=1)


def matched_ngrams(predictions: Tensor, matches: Tensor, max_order: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield for n = 1, 2, … how often the n-gram at each position t stands before [B, T − n + 1], and in each reference
    [B, R, T − n + 1].

    The matches [B, R, T, U] are those of the single tokens.
    """
    found = matches
    # Strictly below the diagonal: an n-gram does not stand before itself.
    earlier = (predictions[:, :, None] == predictions[:, None, :]).tril(-1)  # [B, T, T]
    for _ in range(max_order):
        yield earlier.sum(dim=2), found.sum(dim=3)
        found = found[:, :, :-1, :-1] & found[:, :, 1:, 1:]
        earlier = earlier[:, :-1, :-1] & earlier[:, 1:, 1:]


def sum_prefixes(terms: Tensor, num_steps: int) -> Tensor:
    """Return the sums [..., T + 1] over prefixes of what each n-gram [..., T − n + 1] adds, from its last token on."""
    # Prefixes of fewer than n tokens have no n-gram: the sums begin with zeros.
    return pad(terms.cumsum(dim=-1), (num_steps + 1 - terms.shape[-1], 0))


def correct_counts(predictions: Tensor, matches: Tensor, max_order: int) -> list[Tensor]:
    """Return for n = 1, 2, … the counts [B, T + 1] of correct n-grams in all prefixes of predictions [B, T].

    An n-gram is correct as often as it stands in the reference that has most of it.
    """
    ngrams = matched_ngrams(predictions, matches, max_order)
    num_steps = predictions.shape[1]
    # The most that any reference has is the limit at which the count is clipped.
    return [sum_prefixes(before < found.amax(dim=1), num_steps) for before, found in ngrams]


def extending_counts(predictions: Tensor, alike: Tensor, matches: Tensor, max_order: int) -> list[Tensor]:
    """Return for n = 1, 2, … [B, R, T, R · U], True where y_u after Ŷ_1..t-1 ends one more n-gram of a reference.

    It does if its n-gram, y_u after the last n − 1 tokens, ends at fewer positions of the prefix than of the
    reference. `behind` and `earlier` are the positions of a reference and of the prefix that follow the same n − 1
    tokens; how many of them hold y_u is a product of matrices. The matches [B, R, T, U], and those of the references'
    tokens with those of all references, alike [B, R, U, R · U], are of single tokens.
    """
    repeated = predictions[:, :, None] == predictions[:, None, :]  # [B, T, T]
    # Of unigrams the n − 1 tokens before are none, which all positions share.
    earlier = torch.ones_like(repeated).tril(-1)
    behind = torch.ones_like(matches)
    matches_of_all = matches.transpose(1, 2).flatten(2).float()  # [B, T, R · U]
    counts = []
    for _ in range(max_order):
        # As floats, since there is no matrix product of bools; counts are exact in them.
        counts.append((earlier.float() @ matches_of_all)[:, None] < behind.float() @ alike.float())
        # One step along the diagonal: what ended at a pair of positions now stands right before the next pair.
        earlier, behind = (pad(table[..., :-1, :-1], (1, 0, 1, 0)) for table in (earlier & repeated, behind & matches))
    return counts
