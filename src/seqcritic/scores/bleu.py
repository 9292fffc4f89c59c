"""BLEU: rewards by the paper's sentence BLEU of every prefix, for a whole batch at once; a corpus by sacrebleu.

BLEU of one sentence is often 0, so in rewards (Bahdanau et al. 2017, section 5.2) every count starts at 1:
precision_n = (correct_n + 1) / (possible_n + 1) for n = 1..4. Their geometric mean times the brevity penalty
exp(1 − |Y| / i) of a prefix of i < |Y| tokens, as if it were final, times |Y| is the prefix's score; that of the empty
prefix is 0.

Nothing is recounted from prefix to prefix. The n-gram starting at a place of the prediction is correct if it occurs
earlier in the prediction less often than in the reference, which clips the counts; a running sum does the rest. Two
n-grams are equal if their first and their last n − 1 tokens are, so equality grows from tokens to 4-grams by one `and`
of shifted tables: exact for any vocabulary, without numbering n-grams.

With several references an n-gram is correct as often as in the one that has most of it, and the reference whose length
is closest counts for the brevity penalty, the shorter of two: sacrebleu's rule. |Y| is that of the first.

Shapes: B examples, T prediction tokens, R references, U reference tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from sacrebleu.metrics.bleu import BLEU
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import Array, References, Scorable, ScoreOptions, hold_last
from seqcritic.scores.shared.matching import equal_places, token_matches
from seqcritic.scores.shared.texts import as_compared
from seqcritic.scores.shared.token_score import TokenScore

MAX_ORDER = 4


def correct_counts(predictions: Tensor, matches: Tensor) -> list[Tensor]:
    """Return for n = 1..4 the clipped counts [B, T + 1] of correct n-grams in all prefixes of predictions [B, T].

    The matches [B, R, T, U] are those of the single tokens.
    """
    num_steps = predictions.shape[1]
    found = matches
    earlier = (predictions[:, :, None] == predictions[:, None, :]).tril(-1)  # [B, T, T]
    counts = []
    for _ in range(MAX_ORDER):
        correct = earlier.sum(dim=2) < found.sum(dim=3).amax(dim=1)
        # An n-gram counts from the prefix on that holds its last token.
        before = num_steps + 1 - correct.shape[1]
        counts.append(pad(correct.cumsum(dim=1), (before, 0)))
        found = found[:, :, :-1, :-1] & found[:, :, 1:, 1:]
        earlier = earlier[:, :-1, :-1] & earlier[:, 1:, 1:]
    return counts


def extending_counts(predictions: Tensor, alike: Tensor, matches: Tensor) -> list[Tensor]:
    """Return for n = 1..4 [B, T, R · U], True where y_u after Ŷ_1..t-1 ends one more correct n-gram.

    It does if its n-gram, y_u after the last n − 1 tokens, ends at fewer positions of the prefix than of the reference
    that has most of it. `behind` and `earlier` are the positions of a reference and of the prefix that follow the same
    n − 1 tokens; how many of them hold y_u is a product of matrices. The matches [B, R, T, U], and those of the
    references' tokens with those of all references, alike [B, R, U, R · U], are of single tokens.
    """
    repeated = predictions[:, :, None] == predictions[:, None, :]  # [B, T, T]
    earlier = torch.ones_like(repeated).tril(-1)
    behind = torch.ones_like(matches)
    matches_of_all = matches.transpose(1, 2).flatten(2).float()  # [B, T, R · U]
    counts = []
    for _ in range(MAX_ORDER):
        counts.append(earlier.float() @ matches_of_all < (behind.float() @ alike.float()).amax(dim=1))
        earlier, behind = (pad(table[..., :-1, :-1], (1, 0, 1, 0)) for table in (earlier & repeated, behind & matches))
    return counts


def closest_lengths(lengths: Tensor, reference_lengths: Tensor) -> Tensor:
    """Return [B, L] which of reference_lengths [B, R] is closest to lengths [L] or [B, 1, L]: of two, the shorter."""
    ordered = reference_lengths.sort(dim=1).values  # argmin takes the first of equals
    nearest = (ordered[:, :, None] - lengths).abs().argmin(dim=1)
    return ordered.gather(1, nearest)


def bleu_scores(correct: list[Tensor], lengths: Tensor, closest: Tensor, scale: Tensor) -> Tensor:
    """Return |Y| · BLEU, float64, from clipped counts for n = 1..4 of predictions of so many tokens; 0 of none.

    The brevity penalty is by the `closest` lengths of references, `scale` is |Y|.
    """
    product = torch.ones((), dtype=torch.float64, device=lengths.device)
    for shorter, count in enumerate(correct):
        product = product * ((count + 1) / ((lengths - shorter).clamp(min=0) + 1))
    brevity = (1 - closest / lengths.clamp(min=1)).clamp(max=0).exp()
    # Of no tokens the smoothed precisions are 1, but the penalty is exp(−∞).
    return torch.where(lengths > 0, scale * brevity * product ** (1 / MAX_ORDER), 0.0)


@register_score("bleu")
class BleuScore(TokenScore):
    """R(Ŷ) = |Y| · smoothed sentence BLEU; n-grams with the `unknown` token, where there is one, are never correct.

    They still count as possible: an unknown word must not pay. A perfect prefix of i tokens scores
    |Y| · exp(1 − |Y| / i), so most of the reward falls on the last tokens.

    The corpus score is BLEU as sacrebleu computes it. K = 10: correct and possible n-grams of four orders, two lengths.
    With `tokenised`, lines are taken as they are tokenised and cased already: the paper's convention (multi-bleu on
    tokenised lower-case text). Otherwise sacrebleu tokenises raw lines itself, which is comparable across systems;
    `lowercase` leaves case out of the comparison.
    """

    name = "BLEU"
    has_lookahead = True
    description = "smoothed sentence BLEU × reference length"

    def __init__(
        self, unknown: int | None = None, *, tokenised: bool = False, lowercase: bool = False, tokens: str = "words"
    ) -> None:
        self.unknown = unknown
        self.surrogate = f"sentence-bleu+1:{tokens}"
        tokenize = "none" if tokenised else "13a"
        # The effective order only silences a warning about single sentences: their counts are all we take.
        self._sentences = BLEU(tokenize=tokenize, lowercase=lowercase, force=True, effective_order=True)
        self._corpus = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """BLEU of tokens as they come, or of raw text."""
        tokenised = options.tokens == "whitespace"
        return cls(options.unknown, tokenised=tokenised, lowercase=options.lowercase, tokens=options.tokens)

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        predictions, reference_lengths = batch.predictions, batch.reference_lengths
        matches = self._matches(batch)
        lengths = torch.arange(predictions.shape[1] + 1, dtype=torch.float64, device=predictions.device)  # [T + 1]
        closest = closest_lengths(lengths, reference_lengths.double())
        scale = reference_lengths[:, :1].double()
        scores = bleu_scores(correct_counts(predictions, matches), lengths, closest, scale)
        return hold_last(scores, batch.lengths).to(torch.get_default_dtype())

    def lookahead(self, batch: Scorable) -> Tensor:
        """Return R [B, T, R · U + 1] of the prefixes with one token more, made as long as the shortest reference.

        As they are, the brevity penalty would leave next to no difference between the first tokens.
        """
        predictions, reference_lengths = batch.predictions, batch.reference_lengths.double()
        matches = self._matches(batch)
        alike = equal_places(batch.references, batch.reference_lengths, self.unknown)
        more = extending_counts(predictions, alike, matches)
        before = correct_counts(predictions, matches)
        correct = [count[:, :-1, None] + pad(ends, (0, 1)) for count, ends in zip(before, more, strict=True)]
        steps = torch.arange(1, predictions.shape[1] + 1, dtype=torch.float64, device=predictions.device)
        lengths = torch.maximum(steps, reference_lengths.amin(dim=1, keepdim=True))  # [B, T]
        closest = closest_lengths(lengths[:, None], reference_lengths)
        scores = bleu_scores(correct, lengths[:, :, None], closest[:, :, None], reference_lengths[:, :1, None])
        return scores.to(torch.get_default_dtype())

    def _matches(self, batch: Scorable) -> Tensor:
        """Return [B, R, T, U], True where a prediction's token equals one of a reference."""
        pairs = zip(batch.references.unbind(1), batch.reference_lengths.unbind(1), strict=True)
        return torch.stack([token_matches(batch.predictions, *pair, self.unknown) for pair in pairs], dim=1)

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return each sentence's counts, [sentences, 10]."""
        rows = []
        for row in as_compared(predictions, references, lowercase=False):
            score = self._sentences.sentence_score(row.prediction, row.references)
            rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
        return np.array(rows, np.float64).reshape(-1, 2 * MAX_ORDER + 2)

    def of_totals(self, totals: Array) -> Array:
        """Return BLEU [...] of summed counts [..., 10]."""
        flat = totals.reshape(-1, totals.shape[-1])
        scores = [
            BLEU.compute_bleu(
                correct=row[:MAX_ORDER],
                total=row[MAX_ORDER : 2 * MAX_ORDER],
                sys_len=row[-2],
                ref_len=row[-1],
                smooth_method="exp",
            ).score
            for row in flat.astype(np.int64).tolist()
        ]
        return np.array(scores, np.float64).reshape(totals.shape[:-1])

    def signature(self) -> list[str]:
        """Return the name and the parts of sacrebleu's signature."""
        self._corpus.corpus_score(["a"], [["a"]])  # the number of references is part of it
        return ["score:BLEU", *str(self._corpus.get_signature()).split("|")]
