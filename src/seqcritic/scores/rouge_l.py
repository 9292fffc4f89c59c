"""ROUGE-L (Lin 2004): rewards of every prefix, for a whole batch at once; a corpus by rouge-score.

ROUGE-L is the F-measure of precision LCS / i and recall LCS / |Y|, equally weighted: 2 · LCS / (i + |Y|), with LCS the
longest common subsequence. One row of its table a token of the prediction: L_i[j] is the LCS of its first i tokens and
the first j of the reference. Within a row the only chain is L_i[j] = max(L_i[j], L_i[j-1]), a running maximum, so the
only loop is over the steps of the longest prediction.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Self

import torch
from torch import Tensor

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import References, Scorable, ScoreOptions, hold_last
from seqcritic.errors import UserError
from seqcritic.scores.shared.matching import equal_places, token_matches, tokens_of_all
from seqcritic.scores.shared.means import MeanOfSentences
from seqcritic.scores.shared.texts import as_compared
from seqcritic.scores.shared.token_score import TokenScore

COUNTED = re.compile("[a-z0-9]")


def subsequence_table(matches: Tensor) -> Tensor:
    """Return L [B, T + 1, U + 1] of all prefixes of predictions and of references from matches [B, T, U]."""
    num_examples, num_steps, width = matches.shape
    # Small exact integers: 16 bits move half the memory of 32.
    matches = matches.to(torch.int16)
    row = torch.zeros((num_examples, width + 1), dtype=torch.int16, device=matches.device)
    rows = [row]
    for step in range(num_steps):
        candidate = torch.maximum(row[:, 1:], row[:, :-1] + matches[:, step])
        row = torch.cat([row[:, :1], torch.cummax(candidate, dim=1).values], dim=1)
        rows.append(row)
    return torch.stack(rows, dim=1)


def rouge_scores(common: Tensor, lengths: Tensor, reference_lengths: Tensor, scale: Tensor) -> Tensor:
    """Return |Y| · ROUGE-L from the LCS of predictions of so many tokens and their references; `scale` is |Y|."""
    # Nothing against nothing has no tokens to divide by: its LCS of 0 makes it 0.
    tokens = (lengths + reference_lengths).clamp(min=1)
    return (scale * 2 * common.to(torch.float64) / tokens).to(torch.get_default_dtype())


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


@register_score("rouge-l")
class RougeLScore(MeanOfSentences, TokenScore):
    """R(Ŷ) = |Y| · ROUGE-L; `unknown` tokens never match.

    Times |Y|, a perfect prediction scores |Y| as with BLEU and the edit distance: one reward a token on average, so
    that learning rates and penalties carry over.

    The corpus score is the mean F-measure by the rouge-score library, in percent. It takes the letters a to z, in
    either case, and digits of a text only, beside unknown words; with `tokenised`, the tokens as they are, or in lower
    case. Of several references the one that gives most counts, as in the library; |Y| is that of the first.
    """

    name = "ROUGE-L"
    has_lookahead = True
    description = "ROUGE-L × reference length"

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
        self.surrogate = f"length*rouge-l:{tokens}"
        try:
            from rouge_score.rouge_scorer import RougeScorer
            from rouge_score.tokenizers import DefaultTokenizer
        except ImportError:
            raise UserError("score.name: ROUGE-L needs the extra 'rouge': pip install 'seqcritic[rouge]'") from None
        raw = DefaultTokenizer(use_stemmer=False)
        own = UnknownTokens(raw.tokenize, unknown_word) if unknown_word else raw
        self._scorer = RougeScorer(["rougeL"], tokenizer=SpaceTokens() if tokenised else own)

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """ROUGE-L of tokens as they come, or of raw text."""
        return cls(
            options.unknown,
            unknown_word=options.unknown_word,
            tokenised=options.tokens == "whitespace",
            lowercase=options.lowercase,
            tokens=options.tokens,
        )

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        steps = torch.arange(batch.predictions.shape[1] + 1, device=batch.predictions.device)
        scale = batch.reference_lengths[:, :1]
        scores = []
        for references, lengths in zip(batch.references.unbind(1), batch.reference_lengths.unbind(1), strict=True):
            matches = token_matches(batch.predictions, references, lengths, self.unknown)
            scores.append(rouge_scores(subsequence_table(matches)[:, :, -1], steps, lengths[:, None], scale))
        return hold_last(torch.stack(scores).amax(dim=0), batch.lengths)

    def lookahead(self, batch: Scorable) -> Tensor:
        """Return R [B, T, R · U + 1] of the prefixes with one token more, made as long as the shortest reference."""
        common = tokens_of_all(batch, lambda references, own: self._extended(batch.predictions, references, own))
        steps = torch.arange(1, batch.predictions.shape[1] + 1, device=common.device)[:, None]
        targets = batch.reference_lengths[:, :, None, None]
        lengths = torch.maximum(steps, targets.amin(dim=1, keepdim=True))
        return rouge_scores(common, lengths, targets, targets[:, :1]).amax(dim=1)

    def _extended(self, predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return the LCS [B, T, U + 1] of the prefixes with one token more.

        The token leaves the LCS as it is, or, matched with an equal y_j, makes it L[j-1] + 1.
        """
        matches = token_matches(predictions, references, reference_lengths, self.unknown)
        rows = subsequence_table(matches[:, :-1])  # [B, T, U + 1]
        alike = equal_places(references[:, None], reference_lengths[:, None], self.unknown)[:, 0]
        positions = torch.arange(references.shape[1], device=references.device)
        last = (
            (alike * positions).amax(dim=2)[:, None].expand(-1, rows.shape[1], -1)
        )  # L grows with j: the best of equals
        matched = (rows.gather(2, last) + 1) * alike.any(dim=2)[:, None]  # [B, T, U]
        return torch.maximum(rows[:, :, -1:], torch.nn.functional.pad(matched, (0, 1)))

    def sentence_scores(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None
    ) -> list[float]:
        """Return the best F-measure of each sentence; raw text without anything to count is refused."""
        pairs = as_compared(predictions, references, self.lowercase)
        texts = [text for _, own, _ in pairs for text in own]
        if not self.tokenised and texts and not any(COUNTED.search(text.lower()) for text in texts):
            raise UserError(
                "score.name: ROUGE-L counts the letters a to z and digits only, and no reference has any; for other "
                "alphabets put spaces between words and set data.target_tokens.kind=whitespace, or take bleu"
            )
        return [
            max(float(100 * self._scorer.score(text, prediction)["rougeL"].fmeasure) for text in own)
            for prediction, own, _ in pairs
        ]

    def signature(self) -> list[str]:
        """Return the name, what of the text is compared, and the library's version."""
        case = ["case:lc" if self.lowercase else "case:mixed", "tok:none"] if self.tokenised else []
        return ["score:ROUGE-L", *case, f"rouge-score:{version('rouge-score')}"]
