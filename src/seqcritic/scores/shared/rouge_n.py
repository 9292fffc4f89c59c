"""ROUGE-N (Lin 2004): the F-measure of n-grams, clipped, rewards of every prefix for a whole batch at once.

With C n-grams in common it is 2 · C / ((i − n + 1) + (|Y| − n + 1)) of a prefix of i tokens, neither number below 0.

Shapes: B examples, T prediction tokens, R references, U reference tokens.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.score import Scorable, hold_last
from seqcritic.scores.shared.matching import equal_positions
from seqcritic.scores.shared.ngrams import all_matches, extending_counts, matched_ngrams, sum_prefixes
from seqcritic.scores.shared.rouge import RougeScore, rouge_scores


class RougeNScore(RougeScore):
    """ROUGE of n-grams of one order."""

    order: ClassVar[int]

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        steps = torch.arange(batch.predictions.shape[1] + 1, device=batch.predictions.device)
        lengths = batch.reference_lengths[:, :, None]
        common = self._common(batch, all_matches(batch, self.unknown))
        scores = rouge_scores(common, self._units(steps), self._units(lengths), lengths[:, :1])
        # The best of several references, prefix by prefix: as the library has it for the whole.
        return hold_last(scores.amax(dim=1), batch.lengths)

    def lookahead(self, batch: Scorable) -> Tensor:
        """Return R [B, T, R · U + 1] of the prefixes with one token more, made as long as the shortest reference."""
        matches = all_matches(batch, self.unknown)
        alike = equal_positions(batch.references, batch.reference_lengths, self.unknown)
        more = extending_counts(batch.predictions, alike, matches, self.order)[-1]
        common = self._common(batch, matches)[:, :, :-1, None] + pad(more, (0, 1))  # [B, R, T, R · U + 1]
        steps = torch.arange(1, batch.predictions.shape[1] + 1, device=common.device)[:, None]
        targets = batch.reference_lengths[:, :, None, None]
        lengths = torch.maximum(steps, targets.amin(dim=1, keepdim=True))
        return rouge_scores(common, self._units(lengths), self._units(targets), targets[:, :1]).amax(dim=1)

    def _common(self, batch: Scorable, matches: Tensor) -> Tensor:
        """Return the clipped counts [B, R, T + 1] of n-grams that prefixes have in common with each reference."""
        # Lower orders are only steps on the way to this one.
        *_, (before, found) = matched_ngrams(batch.predictions, matches, self.order)
        return sum_prefixes(before[:, None] < found, batch.predictions.shape[1])

    def _units(self, lengths: Tensor) -> Tensor:
        """Return how many n-grams so many tokens have."""
        # Fewer tokens than n have none, not a negative number of them.
        return (lengths - self.order + 1).clamp(min=0)
