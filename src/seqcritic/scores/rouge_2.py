"""ROUGE-2: the pairs of neighbouring words that prediction and reference have in common."""

from __future__ import annotations

from seqcritic.contracts.registry import register_score
from seqcritic.scores.shared.rouge_n import RougeNScore


@register_score("rouge-2")
class Rouge2Score(RougeNScore):
    """R(Ŷ) = |Y| · ROUGE-2; a reference of one word has no pair, and no prediction of it any reward."""

    name = "ROUGE-2"
    library_name = "rouge2"
    order = 2
