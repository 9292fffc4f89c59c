"""What the scores of the ROUGE family (Lin 2004) share: the corpus score by rouge-score, and the scale of rewards.

All of them are the F-measure of precision C / p and recall C / r, equally weighted, of C units that prediction and
reference have in common: 2 · C / (p + r).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import ClassVar, Self

import torch
from torch import Tensor

from seqcritic.contracts.score import References, ScoreOptions
from seqcritic.errors import UserError
from seqcritic.scores.shared.means import MeanOfSentences
from seqcritic.scores.shared.texts import as_compared
from seqcritic.scores.shared.token_score import TokenScore

COUNTED = re.compile("[a-z0-9]")


def rouge_scores(common: Tensor, units: Tensor, reference_units: Tensor, scale: Tensor) -> Tensor:
    """Return |Y| · ROUGE from how many units are common and how many each side has; `scale` is |Y|."""
    # Nothing against nothing has no units to divide by: 0 in common makes it 0.
    num_units = (units + reference_units).clamp(min=1)
    return (scale * 2 * common.to(torch.float64) / num_units).to(torch.get_default_dtype())


class UnknownTokens:
    """The tokens of rouge-score, with every unknown word kept as one: the library would drop it, and it is an error."""

    def __init__(self, tokenize: Callable[[str], list[str]], unknown_word: str) -> None:
        self._tokenize = tokenize
        self._unknown_word = unknown_word

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text; every unknown word is a token of its own."""
        first, *others = (self._tokenize(part) for part in text.split(self._unknown_word))
        return first + [token for part in others for token in (self._unknown_word, *part)]


class SpaceTokens:
    """Tokens of a text that comes tokenised, for rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        """Return what stands between white space."""
        return text.split()


class RougeScore(MeanOfSentences, TokenScore):
    """R(Ŷ) = |Y| · ROUGE; `unknown` tokens never match.

    Times |Y|, a perfect prediction scores |Y| as with BLEU and the edit distance: one reward a token on average, so
    that learning rates and penalties carry over.

    The corpus score is the mean F-measure by the rouge-score library, in percent. It takes the letters a to z, in
    either case, and digits of a text only, beside unknown words; with `tokenised`, the tokens as they are, or in lower
    case. Of several references the one that gives most counts, as in the library; |Y| is that of the first.
    """

    library_name: ClassVar[str]
    """What rouge-score calls it."""
    has_lookahead = True

    def __init__(
        self,
        unknown: int | None = None,
        *,
        unknown_word: str = "",
        tokenised: bool = False,
        lowercase: bool = False,
        tokens: str = "words",
    ) -> None:
        self.unknown = unknown
        self.tokenised = tokenised
        self.lowercase = tokenised and lowercase  # of raw text the library leaves case out by itself
        self.surrogate = f"length*{self.name.lower()}:{tokens}"
        self.description = f"{self.name} × reference length"
        try:
            # Here, since the extra is not asked of those who use no score of this family.
            from rouge_score.rouge_scorer import RougeScorer
            from rouge_score.tokenizers import DefaultTokenizer
        except ImportError:
            raise UserError(
                f"score.name: {self.name} needs the extra 'rouge': pip install 'seqcritic[rouge]'"
            ) from None
        raw = DefaultTokenizer(use_stemmer=False)
        # Without an unknown word there is nothing to split at, and `str.split` refuses the empty text.
        own = UnknownTokens(raw.tokenize, unknown_word) if unknown_word else raw
        self._scorer = RougeScorer([self.library_name], tokenizer=SpaceTokens() if tokenised else own)

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """ROUGE of tokens as they come, or of raw text."""
        return cls(
            options.unknown,
            unknown_word=options.unknown_word,
            tokenised=options.tokens == "whitespace",
            lowercase=options.lowercase,
            tokens=options.tokens,
        )

    def sentence_scores(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None
    ) -> list[float]:
        """Return the best F-measure of each sentence; raw text without anything to count is refused."""
        pairs = as_compared(predictions, references, self.lowercase)
        # Without this check such texts score 0 whatever is predicted, which looks like a model that knows nothing.
        texts = [text for _, own, _ in pairs for text in own]
        if not self.tokenised and texts and not any(COUNTED.search(text.lower()) for text in texts):
            raise UserError(
                f"score.name: {self.name} counts the letters a to z and digits only, and no reference has any; for "
                "other alphabets put spaces between words and set data.target_tokens.kind=whitespace, or take bleu"
            )
        return [
            max(float(100 * self._scorer.score(text, prediction)[self.library_name].fmeasure) for text in own)
            for prediction, own, _ in pairs
        ]

    def signature(self) -> list[str]:
        """Return the name, what of the text is compared, and the library's version."""
        case = ["case:lc" if self.lowercase else "case:mixed", "tok:none"] if self.tokenised else []
        return [f"score:{self.name}", *case, f"rouge-score:{version('rouge-score')}"]
