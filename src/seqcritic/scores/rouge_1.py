"""ROUGE-1: the words that prediction and reference have in common."""

from __future__ import annotations

from seqcritic.contracts.registry import register_score
from seqcritic.scores.shared.rouge_n import RougeNScore


@register_score("rouge-1")
class Rouge1Score(RougeNScore):
    """R(Ŷ) = |Y| · ROUGE-1."""

    name = "ROUGE-1"
    library_name = "rouge1"
    order = 1
