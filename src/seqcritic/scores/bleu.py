"""BLEU: rewards by the paper's sentence BLEU of every prefix, for a whole batch at once; a corpus by sacrebleu.

BLEU of one sentence is often 0, so in rewards (Bahdanau et al. 2017, section 5.2) every count starts at 1:
precision_n = (correct_n + 1) / (possible_n + 1) for n = 1..4. Their geometric mean times the brevity penalty
exp(1 − |Y| / i) of a prefix of i < |Y| tokens, as if it were final, times |Y| is the prefix's score; that of the empty
prefix is 0.

Nothing is recounted from prefix to prefix (shared/ngrams.py).

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
from seqcritic.scores.shared.matching import equal_positions
from seqcritic.scores.shared.ngrams import all_matches, correct_counts, extending_counts
from seqcritic.scores.shared.texts import as_compared
from seqcritic.scores.shared.token_score import TokenScore

MAX_ORDER = 4


def closest_lengths(lengths: Tensor, reference_lengths: Tensor) -> Tensor:
    """Return [B, L], of reference_lengths [B, R] the one closest to lengths [L] or [B, 1, L]; of two, the shorter."""
    ordered = reference_lengths.sort(dim=1).values  # argmin takes the first of equals
    nearest = (ordered[:, :, None] - lengths).abs().argmin(dim=1)  # [B, L]
    return ordered.gather(1, nearest)


def bleu_scores(correct: list[Tensor], lengths: Tensor, closest: Tensor, scale: Tensor) -> Tensor:
    """Return |Y| · BLEU, float64, from clipped counts for n = 1..4 of predictions of so many tokens; 0 of none.

    The brevity penalty is by the `closest` lengths of references, `scale` is |Y|.
    """
    product = torch.ones((), dtype=torch.float64, device=lengths.device)
    for shorter, count in enumerate(correct):
        # A prefix of fewer than n tokens has no n-gram: its factor is (0 + 1) / (0 + 1) and changes nothing.
        product = product * ((count + 1) / ((lengths - shorter).clamp(min=0) + 1))
    # No premium on more tokens than the reference: beyond its length the penalty is exp(0) = 1.
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
    num_summands = 2 * MAX_ORDER + 2
    has_lookahead = True
    description = "smoothed sentence BLEU × reference length"

    def __init__(
        self, unknown: int | None = None, *, tokenised: bool = False, lowercase: bool = False, tokens: str = "words"
    ) -> None:
        self.unknown = unknown
        self.surrogate = f"sentence-bleu+1:{tokens}"
        # With `force` sacrebleu does not warn of text that looks tokenised: here that is what was asked for.
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
        matches = all_matches(batch, self.unknown)
        lengths = torch.arange(predictions.shape[1] + 1, dtype=torch.float64, device=predictions.device)  # [T + 1]
        closest = closest_lengths(lengths, reference_lengths.double())
        scale = reference_lengths[:, :1].double()
        scores = bleu_scores(correct_counts(predictions, matches, MAX_ORDER), lengths, closest, scale)
        return hold_last(scores, batch.lengths).to(torch.get_default_dtype())

    def lookahead(self, batch: Scorable) -> Tensor:
        """Return R [B, T, R · U + 1] of the prefixes with one token more, made as long as the shortest reference.

        As they are, the brevity penalty would leave next to no difference between the first tokens.
        """
        predictions, reference_lengths = batch.predictions, batch.reference_lengths.double()
        matches = all_matches(batch, self.unknown)
        alike = equal_positions(batch.references, batch.reference_lengths, self.unknown)
        # Clipped by the reference that has most of an n-gram, one more of it counts where any of them has more of it.
        more = [each.any(dim=1) for each in extending_counts(predictions, alike, matches, MAX_ORDER)]
        before = correct_counts(predictions, matches, MAX_ORDER)
        # The last column is of a token in no reference: it ends no n-gram. Of each order [B, T, R · U + 1].
        correct = [count[:, :-1, None] + pad(ends, (0, 1)) for count, ends in zip(before, more, strict=True)]
        steps = torch.arange(1, predictions.shape[1] + 1, dtype=torch.float64, device=predictions.device)
        lengths = torch.maximum(steps, reference_lengths.amin(dim=1, keepdim=True))  # [B, T]
        closest = closest_lengths(lengths[:, None], reference_lengths)
        scores = bleu_scores(correct, lengths[:, :, None], closest[:, :, None], reference_lengths[:, :1, None])
        return scores.to(torch.get_default_dtype())

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return each sentence's counts, [sentences, 10]."""
        rows = []
        # Not in lower case here: sacrebleu does that itself where it was asked to, and its signature says so.
        for row in as_compared(predictions, references, lowercase=False):
            score = self._sentences.sentence_score(row.prediction, row.references)
            rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
        return np.array(rows, np.float64).reshape(-1, self.num_summands)

    def of_totals(self, totals: Array) -> Array:
        """Return BLEU [...] of summed counts [..., 10]."""
        # A bootstrap asks for many sums at once, sacrebleu takes one at a time.
        flat = totals.reshape(-1, totals.shape[-1])
        scores = [
            BLEU.compute_bleu(
                correct=row[:MAX_ORDER],
                total=row[MAX_ORDER : 2 * MAX_ORDER],
                sys_len=row[-2],
                ref_len=row[-1],
                # What `corpus_score` does by default, and what the signature names.
                smooth_method="exp",
            ).score
            for row in flat.astype(np.int64).tolist()
        ]
        return np.array(scores, np.float64).reshape(totals.shape[:-1])

    def signature(self) -> list[str]:
        """Return the name and the parts of sacrebleu's signature."""
        self._corpus.corpus_score(["a"], [["a"]])  # the number of references is part of it
        return ["score:BLEU", *str(self._corpus.get_signature()).split("|")]
