"""Corpus scores that are the mean of a score of each sentence: ROUGE-L, and a user's own function."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from seqcritic.errors import UserError
from seqcritic.scores.function import TextFunction, call_on_pair
from seqcritic.scores.score import Array


class MeanScore:
    """The mean of f(prediction, reference) over the sentences. K = 2: the sum and the number of sentences."""

    lower_is_better = False

    def __init__(self, name: str, function: TextFunction, signature: list[str]) -> None:
        self.name = name
        self._function = function
        self._signature = signature

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's score, and 1."""
        pairs = zip(predictions, references, strict=True)
        scores = [call_on_pair(self._function, prediction, reference) for prediction, reference in pairs]
        return np.stack([np.array(scores, np.float64), np.ones(len(scores))], axis=1)

    def of_totals(self, totals: Array) -> Array:
        """Return Σ scores / number."""
        means: Array = totals[..., 0] / totals[..., 1]
        return means

    def signature(self) -> list[str]:
        """Return the score's name and what changes it."""
        return [f"score:{self.name}", *self._signature]


class SpaceTokens:
    """Tokens of a text that comes tokenised, for rouge-score."""

    def __init__(self, lowercase: bool) -> None:
        self._lowercase = lowercase

    def tokenize(self, text: str) -> list[str]:
        """Return what stands between white space."""
        return (text.lower() if self._lowercase else text).split()


def mean_rouge_l(tokenised: bool = False, lowercase: bool = False) -> MeanScore:
    """Return ROUGE-L F-measure by the rouge-score library, in percent.

    It takes lower-case letters and digits of a text only; with `tokenised`, the tokens as they are, or in lower case.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        raise UserError("score.name: ROUGE-L needs the extra 'rouge': pip install 'seqcritic[rouge]'") from None
    scorer = RougeScorer(["rougeL"], tokenizer=SpaceTokens(lowercase) if tokenised else None)

    def measure(prediction: str, reference: str) -> float:
        return float(100 * scorer.score(reference, prediction)["rougeL"].fmeasure)

    case = [f"case:{'lc' if lowercase else 'mixed'}", "tok:none"] if tokenised else []
    return MeanScore("ROUGE-L", measure, [*case, f"rouge-score:{version('rouge-score')}"])
