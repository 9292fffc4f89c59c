"""Corpus scores that are the mean of a score of each sentence: ROUGE-L, and a user's own function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version

import numpy as np

from seqcritic.errors import UserError
from seqcritic.scores.function import TextFunction, call_on_pair
from seqcritic.scores.score import Array, in_lower_case

COUNTED = re.compile("[a-z0-9]")


class MeanScore:
    """The mean of f(prediction, reference) over the sentences. K = 2: the sum and the number of sentences.

    With `lowercase` the function sees both in lower case.
    """

    lower_is_better = False

    def __init__(self, name: str, function: TextFunction, signature: list[str], lowercase: bool = False) -> None:
        self.name = name
        self._function = function
        self._signature = signature
        self._lowercase = lowercase

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's score, and 1."""
        if self._lowercase:
            predictions, references = in_lower_case(predictions), in_lower_case(references)
        pairs = zip(predictions, references, strict=True)
        scores = [call_on_pair(self._function, prediction, reference) for prediction, reference in pairs]
        return np.stack([np.array(scores, np.float64), np.ones(len(scores))], axis=1)

    def of_totals(self, totals: Array) -> Array:
        """Return Σ scores / number."""
        means: Array = totals[..., 0] / totals[..., 1]
        return means

    def signature(self) -> list[str]:
        """Return the score's name and what changes it."""
        return [f"score:{self.name}", *(["case:lc"] if self._lowercase else []), *self._signature]


class UnknownTokens:
    """The tokens that rouge-score takes, and unknown words, which it would drop: each is a word that is wrong."""

    def __init__(self, tokenize: Callable[[str], list[str]], unknown_word: str) -> None:
        self._tokenize = tokenize
        self._unknown_word = unknown_word

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of what stands between unknown words, and these."""
        first, *others = (self._tokenize(part) for part in text.split(self._unknown_word))
        return first + [token for part in others for token in (self._unknown_word, *part)]


class SpaceTokens:
    """Tokens of a text that comes tokenised, for rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        """Return what stands between white space."""
        return text.split()


class MeanRouge(MeanScore):
    """ROUGE-L of raw text, of which rouge-score counts nothing but the letters a to z and digits."""

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's score, and 1; a text without anything to count is refused."""
        if references and not any(COUNTED.search(reference.lower()) for reference in references):
            raise UserError(
                "score.name: ROUGE-L counts the letters a to z and digits only, and no reference has any; for other "
                "alphabets put spaces between words and set data.target_tokens.kind=whitespace, or take bleu"
            )
        return super().statistics(predictions, references)


def mean_rouge_l(unknown_word: str, tokenised: bool = False, lowercase: bool = False) -> MeanScore:
    """Return ROUGE-L F-measure by the rouge-score library, in percent.

    It takes the letters a to z, in either case, and digits of a text only, beside unknown words; with `tokenised`, the
    tokens as they are, or in lower case.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenizers import DefaultTokenizer
    except ImportError:
        raise UserError("score.name: ROUGE-L needs the extra 'rouge': pip install 'seqcritic[rouge]'") from None
    own = UnknownTokens(DefaultTokenizer(use_stemmer=False).tokenize, unknown_word)
    scorer = RougeScorer(["rougeL"], tokenizer=SpaceTokens() if tokenised else own)

    def measure(prediction: str, reference: str) -> float:
        return float(100 * scorer.score(reference, prediction)["rougeL"].fmeasure)

    library = f"rouge-score:{version('rouge-score')}"
    if not tokenised:
        return MeanRouge("ROUGE-L", measure, [library])
    return MeanScore("ROUGE-L", measure, [*([] if lowercase else ["case:mixed"]), "tok:none", library], lowercase)
