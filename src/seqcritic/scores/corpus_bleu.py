"""Corpus BLEU and chrF by sacrebleu, with their signatures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqcritic.scores.score import Array

NUM_ORDERS = 4


class CorpusBleu:
    """BLEU as sacrebleu computes it. K = 10: correct and possible n-grams of four orders, two lengths.

    With `tokenised`, lines are taken as they are tokenised and cased already: the paper's convention (multi-bleu on
    tokenised lower-case text). Otherwise sacrebleu tokenises raw lines itself, which is comparable across systems;
    `lowercase` leaves case out of the comparison.
    """

    name = "BLEU"
    lower_is_better = False

    def __init__(self, tokenised: bool = False, lowercase: bool = False) -> None:
        tokenize = "none" if tokenised else "13a"
        # The effective order only silences a warning about single sentences: their counts are all we take.
        self._sentences = BLEU(tokenize=tokenize, lowercase=lowercase, force=True, effective_order=True)
        self._corpus = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's counts, [sentences, 10]."""
        rows = []
        for prediction, reference in zip(predictions, references, strict=True):
            score = self._sentences.sentence_score(prediction, [reference])
            rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
        return np.array(rows, np.float64).reshape(-1, 2 * NUM_ORDERS + 2)

    def of_totals(self, totals: Array) -> Array:
        """Return BLEU [...] of summed counts [..., 10]."""
        flat = totals.reshape(-1, totals.shape[-1])
        scores = [
            BLEU.compute_bleu(
                correct=row[:NUM_ORDERS],
                total=row[NUM_ORDERS : 2 * NUM_ORDERS],
                sys_len=row[-2],
                ref_len=row[-1],
                smooth_method="exp",
            ).score
            for row in flat.astype(np.int64).tolist()
        ]
        return np.array(scores, np.float64).reshape(totals.shape[:-1])

    def signature(self) -> list[str]:
        """Return the name and the parts of sacrebleu's signature."""
        self._corpus.corpus_score(["a"], [["a"]])  # the number of references is part of it
        return ["score:BLEU", *str(self._corpus.get_signature()).split("|")]


def corpus_chrf(predictions: Sequence[str], references: Sequence[str], lowercase: bool = False) -> tuple[float, str]:
    """Return chrF of a corpus, with `lowercase` without case, and its signature."""
    metric = CHRF(lowercase=lowercase)
    score = metric.corpus_score(list(predictions), [list(references)]).score
    return float(score), f"chrF|{metric.get_signature()}"
