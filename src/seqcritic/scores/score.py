"""What a score must offer: the score of every prefix for the rewards, and the corpus score for the table.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[np.float64]
Texts = Callable[[], list[str]]
"""Reads the raw texts of the references [B]; called only by scores of texts."""


def in_lower_case(texts: Sequence[str]) -> list[str]:
    """Return texts as a score without case sees them."""
    return [text.lower() for text in texts]


class Score(Protocol):
    """A score of predictions against references. Rewards are differences of prefix scores: larger is better.

    An unknown token of a prediction matches nothing, an unknown token of the reference neither.
    """

    def prefix_scores(
        self,
        predictions: Tensor,
        prediction_lengths: Tensor,
        references: Tensor,
        reference_lengths: Tensor,
        reference_texts: Texts | None = None,
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes of predictions [B, T] against references [B, U]; R of none is 0.

        Lengths [B] count tokens without the end token; prefixes longer than a prediction keep its last score. Without
        `reference_texts` the references are parts of some, of which there are tokens only.
        """
        ...


class ForesightScore(Score, Protocol):
    """A score that also tells the outlook of a prefix: R of a prediction that begins so, if no more of it is right.

    It does so for every next token at once: only those of the reference can be right, so all others come to the same.
    """

    def outlooks(self, predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return [B, T, U + 1], for every t the outlook of Ŷ_1..t-1 with one token more: each of the reference's.

        The last entry, and those of places beyond reference_lengths, are of a token that is not in the reference.
        """
        ...


class CorpusScore(Protocol):
    """A corpus score that is a function of sums over the sentences, so that a bootstrap needs only the summands."""

    name: str
    lower_is_better: bool

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's summands, [sentences, K]."""
        ...

    def of_totals(self, totals: Array) -> Array:
        """Return the corpus scores [...] of sums [..., K]."""
        ...

    def signature(self) -> list[str]:
        """Return `score:NAME` and what else of the score's computation changes the figure."""
        ...


def rewards_from_prefixes(prefixes: Tensor, mask: Tensor, shaping: bool) -> Tensor:
    """Return rewards [B, T] from prefix scores [B, T + 1] and the mask [B, T] of the tokens that count.

    With shaping, r_t = R(Ŷ_1..t) − R(Ŷ_1..t-1); without, the whole R(Ŷ) falls on the last token. Both sum to
    R(Ŷ), the score of the empty prediction being 0.
    """
    if shaping:
        return (prefixes[:, 1:] - prefixes[:, :-1]) * mask
    last = mask & ~torch.nn.functional.pad(mask[:, 1:], (0, 1))
    return prefixes[:, 1:] * last
