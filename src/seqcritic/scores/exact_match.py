"""Exact match: whether a prediction is a reference, to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import References, ScoreOptions
from seqcritic.scores.shared.means import MeanOfSentences
from seqcritic.scores.shared.texts import Compared, TextScore, as_compared


@register_score("exact-match")
class ExactMatch(MeanOfSentences, TextScore):
    """R(Ŷ) = 1 where the text is that of any reference, else 0; the corpus score is their percentage.

    White space at the ends does not count, and with `lowercase` neither does case.
    """

    name = "exact match"
    description = "1 for an exact match"

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """Exact match, without case where the model writes none."""
        return cls(lowercase=options.lowercase)

    def values(self, rows: Sequence[Compared]) -> list[float]:
        """Return 1 or 0."""
        return [float(row.prediction.strip() in {text.strip() for text in row.references}) for row in rows]

    def sentence_scores(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None
    ) -> list[float]:
        """Return 100 or 0 for each sentence."""
        return [100 * value for value in self.values(as_compared(predictions, references, self.lowercase))]

    def signature(self) -> list[str]:
        """Return the name, and whether case was left out."""
        return ["score:exact-match", *(["case:lc"] if self.lowercase else [])]
