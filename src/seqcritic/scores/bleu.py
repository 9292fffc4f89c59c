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
from torch.nn.functional import pad

from seqcritic.scores.score import Texts

MAX_ORDER = 4


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
        counts.append(pad(correct.cumsum(dim=1), (before, 0)))
        found = found[:, :-1, :-1] & found[:, 1:, 1:]
        earlier = earlier[:, :-1, :-1] & earlier[:, 1:, 1:]
    return counts


def extending_counts(predictions: Tensor, alike: Tensor, matches: Tensor) -> list[Tensor]:
    """Return for n = 1..4 [B, T, U], True where y_u after Ŷ_1..t-1 ends one more correct n-gram.

    It does if its n-gram, y_u after the last n − 1 tokens, ends at fewer places of the prefix than of the reference.
    `behind` and `earlier` are the places of the reference and of the prefix that follow the same n − 1 tokens; how many
    of them hold y_u is a product of matrices. The matches [B, T, U], and those of the reference with itself, alike
    [B, U, U], are of single tokens.
    """
    repeated = predictions[:, :, None] == predictions[:, None, :]  # [B, T, T]
    earlier = torch.ones_like(repeated).tril(-1)
    behind = torch.ones_like(matches)
    counts = []
    for _ in range(MAX_ORDER):
        counts.append(earlier.float() @ matches.float() < behind.float() @ alike.float())
        earlier, behind = (pad(table[:, :-1, :-1], (1, 0, 1, 0)) for table in (earlier & repeated, behind & matches))
    return counts


def bleu_scores(correct: list[Tensor], lengths: Tensor, reference_lengths: Tensor) -> Tensor:
    """Return |Y| · BLEU, float64, from clipped counts for n = 1..4 of predictions of so many tokens; 0 of none."""
    product = torch.ones((), dtype=torch.float64, device=lengths.device)
    for shorter, count in enumerate(correct):
        product = product * ((count + 1) / ((lengths - shorter).clamp(min=0) + 1))
    brevity = (1 - reference_lengths / lengths.clamp(min=1)).clamp(max=0).exp()
    # Of no tokens the smoothed precisions are 1, but the penalty is exp(−∞).
    return torch.where(lengths > 0, reference_lengths * brevity * product ** (1 / MAX_ORDER), 0.0)


class BleuScore:
    """R(Ŷ) = |Y| · smoothed sentence BLEU; n-grams with the `unknown` token, where there is one, are never correct.

    They still count as possible: an unknown word must not pay. A perfect prefix of i tokens scores
    |Y| · exp(1 − |Y| / i), so most of the reward falls on the last tokens.
    """

    def __init__(self, unknown: int | None) -> None:
        self.unknown = unknown

    def prefix_scores(
        self,
        predictions: Tensor,
        prediction_lengths: Tensor,
        references: Tensor,
        reference_lengths: Tensor,
        reference_texts: Texts | None = None,
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        matches = token_matches(predictions, references, reference_lengths, self.unknown)
        lengths = torch.arange(predictions.shape[1] + 1, dtype=torch.float64, device=predictions.device)  # [T + 1]
        scores = bleu_scores(correct_counts(predictions, matches), lengths, reference_lengths[:, None].double())
        return hold_last(scores, prediction_lengths).to(torch.get_default_dtype())

    def outlooks(self, predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R [B, T, U + 1] of the prefixes with one token more, made as long as the reference.

        As they are, the brevity penalty would leave next to no difference between the first tokens.
        """
        matches = token_matches(predictions, references, reference_lengths, self.unknown)
        alike = equal_places(references, reference_lengths, self.unknown)
        more = extending_counts(predictions, alike, matches)
        before = correct_counts(predictions, matches)
        correct = [count[:, :-1, None] + pad(ends, (0, 1)) for count, ends in zip(before, more, strict=True)]
        lengths = torch.arange(1, predictions.shape[1] + 1, dtype=torch.float64, device=predictions.device)[:, None]
        targets = reference_lengths[:, None, None].double()
        return bleu_scores(correct, torch.maximum(lengths, targets), targets).to(torch.get_default_dtype())
