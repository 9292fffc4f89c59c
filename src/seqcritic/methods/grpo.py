"""Group relative policy optimisation (GRPO, Shao et al. 2024): samples of one example are each other's baseline.

    A_m = (R(Ŷ^m) − mean_n R(Ŷ^n)) / std_n R(Ŷ^n)
    loss = −1/M Σ_m Σ_t min(ρ_t^m A_m, clip(ρ_t^m, 1 − ε, 1 + ε) A_m)  +  λ_KL KL(p ‖ p_0)

ρ is the ratio to the actor that drew the samples (surrogate.py). With one step and no division it is
`reinforce-multisample` times (M − 1)/M: the sample itself is in its baseline.

What differs from the source: a loss is a sum over the tokens. The source divides that of each sample by its length,
which favours short good answers and long bad ones (Liu et al. 2025). Its penalty is `method.kl_weight`: exact, where
the source estimates it from the chosen token, and towards the actor that the phase began with.

Shapes: B examples, M samples each, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import Field

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.experience import gather_experience
from seqcritic.methods.losses import group_advantages
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.surrogate import passes, surrogate
from seqcritic.settings.base import Rate, Samples, Section, Several


class GrpoSettings(Section):
    """Of `grpo`."""

    samples: Several = Field(4, description="M: samples for each example, instead of method.samples; 64 in the source")
    divides_by_spread: bool = Field(True, description="divide by the standard deviation of an example's returns")
    clip: Rate = Field(0.2, description="ε: how far the probability of a token may go in the steps of one batch")
    steps: Samples = Field(1, description="steps from one batch; 1 in the source's runs, where nothing is clipped")


@register_method
class Grpo(RewardMethod):
    """REINFORCE with the group's mean as the baseline, its spread as the unit, and several clipped steps."""

    name = "grpo"
    Settings = GrpoSettings
    traits = Traits(3.4, 4.1)
    trains: tuple[str, ...] = ("actor",)
    own: GrpoSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the loss of the first step."""
        return next(self.updates(networks, batch, generator, progress))

    def updates(
        self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float
    ) -> Iterator[Outcome]:
        """Yield the losses of the steps that are made from one batch."""
        own, settings = self.own, self.settings
        seen = gather_experience(networks, batch, settings, self.score, self.shaping, generator, samples=own.samples)
        mask = seen.rollout.sample.mask
        returns = seen.rollout.rewards.sum(dim=1).view(len(batch), -1)
        # Made once: later steps weigh the same samples by what they were worth when they were drawn. [B·M, 1]
        advantages = group_advantages(returns, own.divides_by_spread).view(-1, 1)
        to_log = seen.rollout_measurements | {"baseline": returns.mean()}
        for step in passes(networks, batch, seen, settings, generator, own.steps):
            loss, measurements = surrogate(step, advantages, mask, own.clip)
            measurements |= to_log | step.scored.term_measurements()
            yield Outcome(step.scored.add_terms(loss, settings), measurements)
            to_log = {}  # of the samples, once
