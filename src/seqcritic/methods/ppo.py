"""Proximal policy optimisation (PPO, Schulman et al. 2017) with the critic that reads the reference.

    loss = −Σ_t min(ρ_t A_t, clip(ρ_t, 1 − ε, 1 + ε) A_t)
    A_t = Σ_{l≥0} λ^l δ_{t+l},   δ_t = r_t + V_{t+1} − V_t,   V_t = Σ_a p_old(a | Ŷ_1..t-1) Q̂(a; Ŷ_1..t-1, Y)

ρ is the ratio to the actor that drew the samples (surrogate.py). The critic is that of actor-critic: it reads the
reference and values every token, and the value of a state is its expectation under the policy that drew, exactly. There
is no discount. Advantages are made once a batch, before its first step. The critic learns in every step, from the
targets of policy_evaluation.py (bootstrapped by the target critic, or Monte-Carlo), not from λ-returns.

With λ = 1 and one step this is `reinforce-critic`. With λ < 1 the critic's errors bias the gradient: at λ = 0 it is
one-step actor-critic, which credits a token with what the critic says of the next state.

What differs from the source: one step is one of the whole batch, no entropy bonus (there is `method.kl_weight`), the
critic's loss is not clipped, and advantages are not divided by their spread.

Shapes: B sequences (M samples of an example in a row), T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import Field

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import CRITIC, TARGET_CRITIC, Networks
from seqcritic.methods import losses
from seqcritic.methods.experience import gather_experience
from seqcritic.methods.masked_losses import expected_values
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.policy_evaluation import evaluate_policy
from seqcritic.methods.surrogate import passes, surrogate
from seqcritic.settings.base import Fraction, Rate, Samples, Section


class PpoSettings(Section):
    """Of `ppo`."""

    gae_lambda: Fraction = Field(
        0.95, description="λ of generalised advantages: 1, returns less the critic's value; 0, the critic alone"
    )
    clip: Rate = Field(0.2, description="ε: how far the probability of a token may go in the steps of one batch")
    steps: Samples = Field(3, description="steps of actor and critic from one batch")


@register_method
class Ppo(RewardMethod):
    """Several clipped steps along generalised advantages, by the value that the critic gives each state."""

    name = "ppo"
    Settings = PpoSettings
    traits = Traits(7.6, 9.3)
    needs = (CRITIC, TARGET_CRITIC)
    trains: tuple[str, ...] = ("actor", "critic")
    own: PpoSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the loss of the first step."""
        return next(self.updates(networks, batch, generator, progress))

    def updates(
        self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float
    ) -> Iterator[Outcome]:
        """Yield the losses of actor and critic for the steps that are made from one batch."""
        own, settings = self.own, self.settings
        seen = gather_experience(networks, batch, settings, self.score, self.shaping, generator)
        rollout, sample = seen.rollout, seen.rollout.sample
        to_log, advantages = seen.rollout_measurements, None
        for step in passes(networks, batch, seen, settings, generator, own.steps):
            critic = evaluate_policy(networks, batch, rollout, step.scored.states, settings, self.score, generator)
            # Once a batch, by the critic as it was before its own steps: later ones would move the target under the
            # actor.
            if advantages is None:
                # Under p_old, the policy that drew; these probabilities were kept from the draw.
                state_values = expected_values(sample.probabilities, critic.values)
                advantages = losses.generalised_advantages(rollout.rewards, state_values, sample.mask, own.gae_lambda)
                # The critic is evaluated on samples it has not yet learnt from.
                to_log = to_log | critic.measurements
            loss, measurements = surrogate(step, advantages, sample.mask, own.clip)
            measurements |= to_log | step.scored.term_measurements() | {"critic_loss": critic.loss.detach()}
            yield Outcome(step.scored.add_terms(loss, settings) + critic.loss, measurements)
            to_log = {}  # of the samples, once
