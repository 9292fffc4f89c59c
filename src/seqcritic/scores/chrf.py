"""chrF (Popović 2015) by sacrebleu: the F-measure, recall counting twice, of character n-grams up to six."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import Array, References, ScoreOptions
from seqcritic.scores.shared.texts import Compared, TextScore, as_compared


@register_score("chrf")
class ChrfScore(TextScore):
    """R(Ŷ) = |Y| · chrF of the sentence, from 0 to 1; the corpus score is chrF of summed counts, in percent.

    K = 18: n-grams of prediction, of reference and in both, of six orders. Of several references the one with the best
    chrF counts, sacrebleu's rule.
    """

    name = "chrF"
    num_summands = 18
    times_length = True
    description = "sentence chrF × reference length"

    def __init__(self, *, lowercase: bool = False, tokens: str = "words") -> None:
        self.surrogate = f"length*sentence-chrf:{tokens}"
        self._metric = CHRF(lowercase=lowercase)

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """ChrF, without case where the model writes none."""
        return cls(lowercase=options.lowercase, tokens=options.tokens)

    def values(self, rows: Sequence[Compared]) -> list[float]:
        """Return chrF of sentences, from 0 to 1."""
        return [self._metric.sentence_score(row.prediction, row.references).score / 100 for row in rows]

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return each sentence's counts, [sentences, 18], by the reference with the best chrF."""
        # The library leaves case out itself, where it was asked to, and its signature says so.
        rows = as_compared(predictions, references, lowercase=False)
        counts = [
            # By a private function: a sentence's public result holds chrF alone, without the counts that a corpus adds
            # up.
            self._metric._extract_corpus_statistics([row.prediction], [[text] for text in row.references])[0]
            for row in rows
        ]
        return np.array(counts, np.float64)

    def of_totals(self, totals: Array) -> Array:
        """Return chrF [...] of summed counts [..., 18]."""
        flat = totals.reshape(-1, totals.shape[-1]).astype(np.int64).tolist()
        scores = [self._metric._compute_f_score(row) for row in flat]
        return np.array(scores, np.float64).reshape(totals.shape[:-1])

    def signature(self) -> list[str]:
        """Return the name and the parts of sacrebleu's signature."""
        self._metric.corpus_score(["a"], [["a"]])  # the number of references is part of it
        return ["score:chrF", *str(self._metric.get_signature()).split("|")]
