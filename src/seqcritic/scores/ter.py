"""Translation edit rate (Snover et al. 2006) by sacrebleu: word edits, where moving several words at once is one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.ter import TER

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import Array, References
from seqcritic.scores.shared.texts import Compared, TextScore, as_compared


@register_score("ter")
class TerScore(TextScore):
    """R(Ŷ) = edits of nothing − edits of Ŷ; the corpus score is 100 · Σ edits / Σ reference lengths. K = 2.

    Of several references the one with the fewest edits counts, and the mean of their lengths: sacrebleu's rule. As in
    the library case never counts.
    """

    name = "TER"
    higher_is_better = False
    counts_errors = True
    description = "word edits saved, moved phrases counted once"

    def __init__(self) -> None:
        self._metric = TER()

    def values(self, rows: Sequence[Compared]) -> list[float]:
        """Return the negated number of edits."""
        return [-self._count(row)[0] for row in rows]

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return each sentence's edits and the mean length of its references."""
        # Never in lower case: the library compares without case by itself.
        rows = [self._count(row) for row in as_compared(predictions, references, lowercase=False)]
        return np.array(rows, np.float64).reshape(-1, 2)

    def _count(self, row: Compared) -> tuple[float, float]:
        found = self._metric.sentence_score(row.prediction, row.references)
        return found.num_edits, found.ref_length

    def of_totals(self, totals: Array) -> Array:
        """Return 100 Σ edits / Σ lengths; without a word in the references, 100 for any edit, as in the library."""
        edits, lengths = totals[..., 0], totals[..., 1]
        # Both branches of `where` are computed: without this one divides by 0 and NumPy warns.
        rates = edits / np.where(lengths > 0, lengths, 1)
        scores: Array = 100 * np.where(lengths > 0, rates, edits > 0)
        return scores

    def signature(self) -> list[str]:
        """Return the name and the parts of sacrebleu's signature."""
        self._metric.corpus_score(["a"], [["a"]])  # the number of references is part of it
        return ["score:TER", *str(self._metric.get_signature()).split("|")]
