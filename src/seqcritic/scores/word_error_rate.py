"""The word error rate of texts, whatever the tokens are that they are written in: the score of speech recognition."""

from __future__ import annotations

from seqcritic.contracts.registry import register_score
from seqcritic.scores.character_error_rate import CharacterErrorRate
from seqcritic.scores.edit_distance import EditDistanceScore


@register_score("word-error-rate")
class WordErrorRate(CharacterErrorRate):
    """R(Ŷ) = |Y| − d(Ŷ, Y) in words between spaces, over |Y| with `normalise`; the corpus score is WER.

    Words are compared as they are written, with their case and with punctuation that stands at them.
    """

    name = "WER"

    @staticmethod
    def _make_rate(normalise: bool, capped: bool, lowercase: bool) -> EditDistanceScore:
        return EditDistanceScore(
            normalise, split=str.split, rules="whitespace", capped=capped, lowercase=lowercase, tokens="words"
        )
