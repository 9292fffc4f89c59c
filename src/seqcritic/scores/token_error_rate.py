"""The error rate in tokens: edit distances, by the name that the field has for what is reported of them."""

from __future__ import annotations

from seqcritic.contracts.registry import register_score
from seqcritic.scores.edit_distance import EditDistanceScore


@register_score("token-error-rate")
class TokenErrorRate(EditDistanceScore):
    """R(Ŷ) = |Y| − d(Ŷ, Y) in tokens, reported as WER where tokens are words, else as CER.

    It is the score `edit-distance`, which published studies and their signatures say.
    """
