"""Scores that count tokens in tensors: every prefix costs them no more than the whole."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from seqcritic.contracts.score import Scorable, Score


class TokenScore(Score):
    """A score of token ids, all prefixes at once."""

    unit = "tokens"

    def score(self, batch: Scorable) -> Tensor:
        """R(Ŷ) [B], the last of the prefixes' scores."""
        return self.prefix_scores(batch)[:, -1]

    @abstractmethod
    def prefix_scores(self, batch: Scorable) -> Tensor:
        """R [B, T + 1] of the prefixes; those longer than a prediction keep its last score."""

    def reward_unit(self, batch: Scorable) -> Tensor:
        """Return |Y| [B] of the first reference."""
        return batch.reference_lengths[:, 0].clamp(min=1).double()
