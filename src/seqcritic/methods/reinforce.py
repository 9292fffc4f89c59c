"""REINFORCE (Williams 1992; Ranzato et al. 2015) with a linear baseline, or with the critic as the baseline.

    dV/dθ ≈ Σ_t d log p(ŷ_t | Ŷ_1..t-1)/dθ · (Σ_{τ≥t} r_τ − b_t)  +  λ_LL Σ_t d log p(y_t | Y_1..t-1)/dθ

`reinforce`: b_t is linear in the actor's state and learns the return. `reinforce-critic` (section 5 of the paper):
b_t = Σ_a p(a | Ŷ_1..t-1) Q̂(a; Ŷ_1..t-1, Y). The authors' code subtracted Q̂(ŷ_{t-1}) − r_{t-1} and lost the gradient
of the first tokens; ours does not depend on ŷ_t and gives every token its gradient. Samples come from the present
actor (γ_θ = 1, as in the paper): from a delayed one the estimate would be biased.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import BASELINE, CRITIC, TARGET_CRITIC, Networks
from seqcritic.methods import losses
from seqcritic.methods.experience import Experience, gather_experience
from seqcritic.methods.masked_losses import soft_values
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.policy_evaluation import evaluate_policy


@register_method
class Reinforce(RewardMethod):
    """REINFORCE with a learned linear baseline on the actor's states."""

    name = "reinforce"
    traits = Traits(1.5, 2.2)
    needs = (BASELINE,)
    trains: tuple[str, ...] = ("actor", "baseline")

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the actor's loss plus the baseline's squared error."""
        seen = gather_experience(networks, batch, self.settings, self.score, self.shaping, generator)
        mask = seen.rollout.sample.mask
        actor_loss, baseline_loss = linear_baseline_losses(networks, seen, seen.token_log_probabilities, mask)
        measurements = {"actor_loss": actor_loss.detach(), "baseline_loss": baseline_loss.detach()}
        return Outcome(
            seen.add_terms(actor_loss, self.settings) + baseline_loss,
            measurements | seen.measurements,
        )


def linear_baseline_losses(
    networks: Networks, seen: Experience, token_log_probabilities: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the losses of actor and baseline over the unmasked tokens [B, T] with log-probabilities [B, T]."""
    assert networks.baseline is not None
    # Returns are summed over all tokens drawn, the losses only over those of the given mask (MIXER has two).
    returns = losses.returns_to_go(seen.rollout.rewards, seen.rollout.sample.mask)
    # The states are constants: the baseline's error must not move the actor towards being predictable.
    baselines = networks.baseline(seen.states)
    baseline_loss = losses.mean_over_sequences((baselines - returns).square(), mask)
    return losses.reinforce_loss(token_log_probabilities, returns, baselines.detach(), mask), baseline_loss


@register_method
class ReinforceCritic(RewardMethod):
    """REINFORCE with the critic's expected value under the actor as the baseline."""

    name = "reinforce-critic"
    traits = Traits(3.0, 3.6)
    needs = (CRITIC, TARGET_CRITIC)
    trains: tuple[str, ...] = ("actor", "critic")

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the actor's loss plus the critic's."""
        seen = gather_experience(networks, batch, self.settings, self.score, self.shaping, generator)
        critic = evaluate_policy(networks, batch, seen.rollout, seen.states, self.settings, self.score, generator)
        mask = seen.rollout.sample.mask
        # Of the actor's own distribution at that prefix: it does not depend on the token drawn, so it costs no bias.
        baselines = soft_values(seen.logits.detach(), critic.values)
        returns = losses.returns_to_go(seen.rollout.rewards, mask)
        actor_loss = losses.reinforce_loss(seen.token_log_probabilities, returns, baselines, mask)
        measurements = {"actor_loss": actor_loss.detach(), "critic_loss": critic.loss.detach()}
        return Outcome(
            seen.add_terms(actor_loss, self.settings) + critic.loss,
            measurements | critic.measurements | seen.measurements,
        )
