"""The character error rate of texts, whatever the tokens are that they are written in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from rapidfuzz.distance import Levenshtein

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import Array, References, ScoreOptions
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.shared.texts import Compared, TextScore


@register_score("character-error-rate")
class CharacterErrorRate(TextScore):
    """R(Ŷ) = |Y| − d(Ŷ, Y) in characters, over |Y| with `normalise`; the corpus score is CER.

    Of several references the nearest counts, as with edit distances of tokens.
    """

    name = "CER"
    higher_is_better = False
    counts_errors = True

    def __init__(self, normalise: bool = False, *, capped: bool = False, lowercase: bool = False) -> None:
        self.normalise = normalise
        self.lowercase = lowercase
        # It has the corpus side, the signature and the split. Its rewards are not used: they count the model's tokens.
        self._rate = self._make_rate(normalise, capped, lowercase)
        self.surrogate = self._rate.surrogate
        unit = "characters" if self._rate.split is None else "words"
        self.description = f"{self._rate.description}, in {unit}"

    @staticmethod
    def _make_rate(normalise: bool, capped: bool, lowercase: bool) -> EditDistanceScore:
        return EditDistanceScore(normalise, capped=capped, lowercase=lowercase)

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """CER, without case where the model writes none."""
        return cls(options.normalise, capped=options.capped, lowercase=options.lowercase)

    def values(self, rows: Sequence[Compared]) -> list[float]:
        """Return the negated distance to the nearest reference."""
        return [-min(self._distance(row.prediction, text) for text in row.references) for row in rows]

    def _distance(self, prediction: str, reference: str) -> float:
        # A text is the sequence of its characters as it stands.
        split: Callable[[str], Sequence[str]] = self._rate.split or str
        written, wanted = split(prediction), split(reference)
        distance = Levenshtein.distance(written, wanted)
        # Of an empty reference the distance itself, as in edit_distance.py: there is no length to divide by.
        return distance / max(len(wanted), 1) if self.normalise else distance

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return each sentence's distance and its reference's length; references that are all empty are refused."""
        return self._rate.statistics(predictions, references)

    def of_totals(self, totals: Array) -> Array:
        """Return 100 Σ distances / Σ lengths."""
        return self._rate.of_totals(totals)

    def signature(self) -> list[str]:
        """Return the name, whether errors are capped and case left out, and the library's version."""
        return self._rate.signature()
