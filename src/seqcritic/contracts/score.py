"""The score's contract: what a model is trained for and what is reported of it, one object.

`score` scores whole predictions, `prefix_scores` every prefix, from which rewards are made; `lookahead`, where a score
has one, tells what every next token promises. The corpus side is a function of sums over sentences, so that a bootstrap
needs the summands alone: `statistics` and `of_totals`, with the `signature` that makes a figure comparable.

Shapes: B examples, T prediction tokens, R references of an example, U reference tokens, K summands.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqcritic.errors import UserError

Array = npt.NDArray[np.float64]
References: TypeAlias = str | Sequence[str]
"""The gold answers of one example: one text, or several."""
Decode = Callable[[list[int]], str]
Text = TypeVar("Text")
NO_TEXTS = "score: it reads {} as texts, and the task's batches are made of tokens alone; make them by Batch.of"


def all_of(references: References) -> tuple[str, ...]:
    """The references of one example, where there may be one or several."""
    # A text is a sequence as well, of characters.
    return (references,) if isinstance(references, str) else tuple(references)


@dataclass(frozen=True)
class Scorable:
    """Predictions with all that they may be compared with; texts are read only when a score asks for them.

    Lengths count tokens without the end token. An example with fewer references than R has its first one repeated:
    the best of several, the nearest of several and clipped counts are the same.
    """

    predictions: Tensor  # [B, T] ids
    lengths: Tensor  # [B]
    references: Tensor  # [B, R, U] ids
    reference_lengths: Tensor  # [B, R]
    decode: Decode | None = None
    read_references: Callable[[], list[tuple[str, ...]]] | None = None
    read_sources: Callable[[], list[str]] | None = None

    @classmethod
    def of(cls, predictions: Tensor, lengths: Tensor, references: Tensor, reference_lengths: Tensor) -> Scorable:
        """Predictions [B, T] with one reference each [B, U], without texts."""
        return cls(predictions, lengths, references[:, None], reference_lengths[:, None])  # R = 1

    def __len__(self) -> int:
        return len(self.predictions)

    def prediction_texts(self) -> list[str]:
        """The predictions as texts [B]."""
        if self.decode is None:
            raise UserError(NO_TEXTS.format("predictions"))
        rows = zip(self.predictions.tolist(), self.lengths.tolist(), strict=True)
        return [self.decode(prediction[:length]) for prediction, length in rows]

    def reference_texts(self) -> list[tuple[str, ...]]:
        """All references of each example as they stand in the data [B]; the first is the one that is learnt from."""
        if self.read_references is None:
            raise UserError(NO_TEXTS.format("references"))
        return self.read_references()

    def source_texts(self) -> list[str]:
        """The sources as they stand in the data [B]."""
        if self.read_sources is None:
            raise UserError(NO_TEXTS.format("sources"))
        return self.read_sources()

    def prefixes(self, rows: Tensor, ends: Tensor) -> Scorable:
        """The first `ends` [N] tokens of the predictions `rows` [N]."""
        chosen = rows.tolist()  # texts are found by Python's numbers
        return replace(
            self,
            predictions=self.predictions[rows],
            # Prefixes are not cut out: a shorter length says where the same row ends.
            lengths=ends,
            references=self.references[rows],
            reference_lengths=self.reference_lengths[rows],
            read_references=_select(self.read_references, chosen),
            read_sources=_select(self.read_sources, chosen),
        )


@dataclass(frozen=True)
class ScoreOptions:
    """What a score is built of: how the texts it will see are made of tokens, and the settings of `score`."""

    tokens: str = "characters"
    """What a token is: characters, words, whitespace (text that comes tokenised) or subwords."""
    unknown: int | None = None
    """The token that stands for all unknown ones and so matches nothing."""
    unknown_word: str = ""
    """What an unknown token reads in the text of a prediction."""
    lowercase: bool = False
    """Whether case is left out of the comparison, as the model writes none."""
    split: Callable[[str], list[str]] | None = None
    """Splits a text into the words that are counted; None where characters are."""
    rules: str = ""
    """The name of `split` in a signature."""
    normalise: bool = False
    """score.normalise"""
    capped: bool = False
    """score.capped"""
    parts: tuple[tuple[Score, float], ...] = ()
    """score.parts, built, with their weights"""


class Score(ABC):
    """A score of predictions against references.

    An unknown token of a prediction matches nothing, an unknown token of the reference neither. Rewards are sums and
    differences of what `score` and `prefix_scores` return: there larger is always better, and the empty prediction has
    0. `higher_is_better` is of the corpus score in tables.
    """

    name: str
    """The corpus score in tables, such as CER."""
    higher_is_better: bool = True
    unit: Literal["text", "tokens"]
    """What rewards are made of. A score of texts is asked for as few predictions as will do."""
    corpus_unit: float = 100.0
    """What of the corpus score is one whole: 100 where it is in percent, 1 of a function of one's own."""
    num_summands: int = 2
    """K, the width of `statistics`."""
    has_lookahead: bool = False
    surrogate: str = ""
    """`NAME:UNIT` of what rewards are made of, where that is not what the corpus score counts."""
    description: str = ""
    """What rewards add up to, in words."""

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """Build the score from its options."""
        return cls()

    def read_corpus(self, read: Callable[[], Sequence[Sequence[list[int]]]]) -> None:
        """Take note of how the references of the validation set, all of each example, are read as ids.

        For scores that weigh tokens by how common they are; before the first `score`. Most need none.
        """
        return

    def members(self) -> tuple[Score, ...]:
        """The scores that rewards are made of: itself, or the parts of a sum."""
        return (self,)

    def write(self, value: float) -> str:
        """A corpus score as it is printed: percent with two decimals, others with at least four digits that count."""
        return f"{value:.{self.num_decimals(value)}f}"

    def num_decimals(self, value: float) -> int:
        """How many decimals a corpus score of this size is printed with."""
        if self.corpus_unit == 100 or value == 0 or not math.isfinite(value):
            return 2 if self.corpus_unit == 100 else 4
        # 0.01234 has the exponent −2, and so five decimals; very small values are cut at nine.
        return min(max(2, 3 - math.floor(math.log10(abs(value)))), 9)

    def reward_unit(self, batch: Scorable) -> Tensor:
        """The R of a perfect prediction [B], by which sums of several scores divide; here 1."""
        return torch.ones(len(batch), dtype=torch.float64, device=batch.predictions.device)

    @abstractmethod
    def score(self, batch: Scorable) -> Tensor:
        """R(Ŷ) [B] of whole predictions."""

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """R [B, T + 1] of the prefixes of all lengths; those longer than a prediction keep its last score."""
        steps = torch.arange(batch.predictions.shape[1] + 1, device=batch.lengths.device)
        # [B, T + 1]; ≤, since a prefix may have any length from 0 to the whole.
        mask = steps <= batch.lengths[:, None]
        rows, ends = mask.nonzero(as_tuple=True)
        # All prefixes of all rows in one call: a score of texts may have a price for each call.
        found = self.score(batch.prefixes(rows, ends))
        table = found.new_zeros(mask.shape)
        table[rows, ends] = found
        return hold_last(table, batch.lengths)

    def lookahead(self, batch: Scorable) -> Tensor | None:
        """R [B, T, R · U + 1] of Ŷ_1..t-1 with one token more, if no more of the prediction is right; None: not known.

        The token is each of the references', one reference after the other, for only those can be right. The last
        entry, and those of positions beyond a reference's length, are of a token that is in none of them. Scores whose
        rewards come late, as by a brevity penalty, take the prediction to be as long as the shortest reference.
        """
        return None

    @abstractmethod
    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Each sentence's summands [sentences, K]."""

    @abstractmethod
    def of_totals(self, totals: Array) -> Array:
        """Corpus scores [...] of sums [..., K]."""

    @abstractmethod
    def signature(self) -> list[str]:
        """`score:NAME` and what else of the score's computation changes the figure."""


def hold_last(prefixes: Tensor, lengths: Tensor) -> Tensor:
    """Prefix scores [B, T + 1] with those beyond the lengths [B] replaced by that of the whole prediction."""
    steps = torch.arange(prefixes.shape[1], device=prefixes.device)
    # So that differences after the end are 0, whatever stands in the padding.
    return prefixes.gather(1, torch.minimum(steps, lengths[:, None]))


def rewards_from_prefixes(prefixes: Tensor, mask: Tensor) -> Tensor:
    """Rewards r_t = R(Ŷ_1..t) − R(Ŷ_1..t-1) [B, T] from prefix scores [B, T + 1] and the mask [B, T].

    They sum to R(Ŷ), the score of the empty prediction being 0.
    """
    return (prefixes[:, 1:] - prefixes[:, :-1]) * mask


def rewards_at_end(scores: Tensor, mask: Tensor) -> Tensor:
    """Rewards [B, T] that are R(Ŷ) [B] at the last unmasked token and 0 before it."""
    # Also where a prediction was cut and has no end token.
    last = mask & ~torch.nn.functional.pad(mask[:, 1:], (0, 1))
    return scores[:, None] * last


def _select(read: Callable[[], list[Text]] | None, rows: list[int]) -> Callable[[], list[Text]] | None:
    """What reads some of the texts, where they can be read."""
    if read is None:
        return None

    def read_some() -> list[Text]:
        # Read when asked for: a score of ids never pays for text.
        texts = read()
        return [texts[row] for row in rows]

    return read_some
