"""Actor-critic for sequence prediction: Algorithm 1 of Bahdanau et al. 2017.

    dV/dθ ≈ Σ_t Σ_a dp(a | Ŷ_1..t-1)/dθ · Q̂(a; Ŷ_1..t-1, Y)  +  λ_LL Σ_t d log p(y_t | Y_1..t-1)/dθ

Ŷ is drawn from the delayed actor p'; the critic learns at the same time (policy_evaluation.py). Where M samples
are drawn we average over them, where the paper sums: the scale of the loss then does not depend on M.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.data.batch import Batch
from seqcritic.methods.counted_losses import soft_values
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.method import Outcome, RewardMethod
from seqcritic.methods.networks import Networks
from seqcritic.methods.on_samples import experience
from seqcritic.methods.policy_evaluation import evaluate_policy
from seqcritic.methods.rollout import Draw
from seqcritic.tensors.packed import Packed


class ActorCritic(RewardMethod):
    """The actor follows the critic's values of all tokens; the critic follows the delayed actor's returns."""

    trains: tuple[str, ...] = ("actor", "critic")

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return actor loss plus critic loss: no gradient of one reaches the other's weights."""
        roll_in = self.roll_in(networks, batch, progress)
        seen = experience(networks, batch, self.settings, self.score, self.shaping, generator, draw=roll_in)
        critic = evaluate_policy(networks, batch, seen.rollout, seen.states, self.settings, self.score, generator)
        actor_loss = self.actor_loss(seen.logits, critic.values, seen.rollout.sample.mask)
        measurements = {"actor_loss": actor_loss.detach(), "critic_loss": critic.loss.detach()}
        return Outcome(
            seen.add_likelihood(actor_loss, self.settings.likelihood_weight) + critic.loss,
            measurements | critic.measurements | seen.measurements,
        )

    def roll_in(self, networks: Networks, batch: Batch, progress: float) -> Draw | None:
        """Return what draws the predictions, if not the sampling actor alone."""
        return None

    def actor_loss(self, logits: Packed, values: Packed, mask: Tensor) -> Tensor:
        """Return −Σ_t Σ_a p(a) Q̂(a) from the actor's logits and the critic's values, both packed [N, V]."""
        return -mean_over_sequences(soft_values(logits, values), mask)
