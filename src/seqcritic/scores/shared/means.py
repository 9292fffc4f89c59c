"""Corpus scores that are the mean of a score of each sentence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from seqcritic.contracts.score import Array, References, Score


class MeanOfSentences(Score):
    """The corpus side of a mean. K = 2: the score and 1."""

    @abstractmethod
    def sentence_scores(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None
    ) -> list[float]:
        """The score of each sentence, as the table has it."""

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return each sentence's score, and 1."""
        scores = self.sentence_scores(predictions, references, sources)
        # The 1 is counted with the score, so that a bootstrap's sums know how many sentences they are of.
        return np.stack([np.array(scores, np.float64), np.ones(len(scores))], axis=1)

    def of_totals(self, totals: Array) -> Array:
        """Return Σ scores / number."""
        means: Array = totals[..., 0] / totals[..., 1]
        return means
