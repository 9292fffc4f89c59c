"""The paper's sentence BLEU of every prefix, for a whole batch at once (Bahdanau et al. 2017, section 5.2).

BLEU of one sentence is often 0, so every count starts at 1: precision_n = (correct_n + 1) / (possible_n + 1) for
n = 1..4. Their geometric mean times the brevity penalty exp(1 − |Y| / i) of a prefix of i < |Y| tokens, as if it were
final, times |Y| is the prefix's score; that of the empty prefix is 0.

Nothing is recounted from prefix to prefix. The n-gram starting at a place of the prediction is correct if it occurs
earlier in the prediction less often than in the reference, which clips the counts; a running sum does the rest. Two
n-grams are equal if their first and their last n − 1 tokens are, so equality grows from tokens to 4-grams by one `and`
of shifted tables: exact for any vocabulary, without numbering n-grams.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

MAX_ORDER = 4


def token_matches(predictions: Tensor, references: Tensor, reference_lengths: Tensor, unknown: int | None) -> Tensor:
    """Return [B, T, U], True where a prediction's token equals a reference's: never on padding or unknown tokens."""
    places = torch.arange(references.shape[1], device=references.device)
    known = places < reference_lengths[:, None]
    if unknown is not None:
        known &= references != unknown
    return (predictions[:, :, None] == references[:, None, :]) & known[:, None, :]


def hold_last(prefixes: Tensor, prediction_lengths: Tensor) -> Tensor:
    """Return prefix scores [B, T + 1] with those beyond prediction_lengths [B] replaced by the last one that counts."""
    steps = torch.arange(prefixes.shape[1], device=prefixes.device)
    return prefixes.gather(1, torch.minimum(steps, prediction_lengths[:, None]))


def correct_counts(predictions: Tensor, matches: Tensor) -> list[Tensor]:
    """Return for n = 1..4 the clipped counts [B, T + 1] of correct n-grams in all prefixes of predictions [B, T].

    The matches [B, T, U] are those of the single tokens.
    """
    num_steps = predictions.shape[1]
    found = matches
    earlier = (predictions[:, :, None] == predictions[:, None, :]).tril(-1)  # [B, T, T]
    counts = []
    for _ in range(MAX_ORDER):
        correct = earlier.sum(dim=2) < found.sum(dim=2)
        # An n-gram counts from the prefix on that holds its last token.
        before = num_steps + 1 - correct.shape[1]
        counts.append(torch.nn.functional.pad(correct.cumsum(dim=1), (before, 0)))
        found = found[:, :-1, :-1] & found[:, 1:, 1:]
        earlier = earlier[:, :-1, :-1] & earlier[:, 1:, 1:]
    return counts


class BleuScore:
    """R(Ŷ) = |Y| · smoothed sentence BLEU; n-grams with the `unknown` token, where there is one, are never correct.

    They still count as possible: an unknown word must not pay. A perfect prefix of i tokens scores
    |Y| · exp(1 − |Y| / i), so most of the reward falls on the last tokens.
    """

    def __init__(self, unknown: int | None) -> None:
        self.unknown = unknown

    def prefix_scores(
        self, predictions: Tensor, prediction_lengths: Tensor, references: Tensor, reference_lengths: Tensor
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        matches = token_matches(predictions, references, reference_lengths, self.unknown)
        lengths = torch.arange(predictions.shape[1] + 1, dtype=torch.float64, device=predictions.device)  # [T + 1]
        product = torch.ones((), dtype=torch.float64, device=predictions.device)
        for shorter, correct in enumerate(correct_counts(predictions, matches)):
            product = product * ((correct + 1) / ((lengths - shorter).clamp(min=0) + 1))
        targets = reference_lengths[:, None].to(torch.float64)
        brevity = (1 - targets / lengths.clamp(min=1)).clamp(max=0).exp()
        scores = targets * brevity * product ** (1 / MAX_ORDER)
        scores[:, 0] = 0  # no tokens: the smoothed precisions are 1, but the penalty is exp(−∞)
        return hold_last(scores, prediction_lengths).to(torch.get_default_dtype())
