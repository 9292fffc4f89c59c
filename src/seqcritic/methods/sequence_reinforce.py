"""What the REINFORCE methods with one baseline for the whole sequence share.

    dV/dθ ≈ Σ_t d log p(ŷ_t | Ŷ_1..t-1)/dθ · (R(Ŷ) − b)  +  λ_LL Σ_t d log p(y_t | Y_1..t-1)/dθ

Every token is credited with the whole return, as in the sources, so shaping has no effect. Nothing is lost by it: the
return after ŷ_t against what is left of b, Σ_{τ≥t} r_τ − (b − R(Ŷ_1..t-1)), is the same number.

Shapes: B examples, M samples each, T tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.networks import Networks
from seqcritic.methods.experience import Experience, gather_experience
from seqcritic.methods.losses import reinforce_loss
from seqcritic.methods.method import RewardMethod


class SequenceReinforce(RewardMethod, ABC):
    """REINFORCE on whole returns; a method says how many samples it draws and what it subtracts."""

    trains: tuple[str, ...] = ("actor",)

    @property
    def num_samples(self) -> int:
        """M."""
        return self.settings.samples

    @abstractmethod
    def baselines(self, networks: Networks, batch: Batch, seen: Experience, returns: Tensor) -> Tensor:
        """Return a constant that each return of [B, M] is compared with, [B, M] or [B, 1].

        The estimate is unbiased where it does not depend on the sample itself.
        """

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the actor's loss."""
        seen = gather_experience(
            networks, batch, self.settings, self.score, self.shaping, generator, samples=self.num_samples
        )
        # Rewards add up to R(Ŷ), with shaping and without: [B, M].
        returns = seen.rollout.rewards.sum(dim=1).view(len(batch), -1)
        # A baseline for an example, [B, 1], serves all of its samples.
        baselines = self.baselines(networks, batch, seen, returns).expand_as(returns)
        # [B·M, 1] against [B·M, T]: every token is credited with the whole return.
        loss = reinforce_loss(
            seen.token_log_probabilities, returns.reshape(-1, 1), baselines.reshape(-1, 1), seen.rollout.sample.mask
        )
        measurements = {"actor_loss": loss.detach(), "baseline": baselines.mean()}
        return Outcome(seen.add_terms(loss, self.settings), measurements | seen.measurements)
