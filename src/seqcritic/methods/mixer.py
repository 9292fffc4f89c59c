"""MIXER (Ranzato et al. 2015): likelihood on the beginning of a sequence, REINFORCE on a growing rest of it.

    loss = −Σ_{t≤s} log p(y_t | Y_1..t-1)  −  Σ_{t>s} log p(ŷ_t | Ŷ_1..t-1) (Σ_{τ≥t} r_τ − b_t),   s = max(0, T − Δ·k)

Ŷ begins with the s first tokens of the reference and goes on as the actor draws. Stage k of ⌈T/Δ⌉ is 1 at the first
update of the phase, and the last stage, in which the whole sequence is drawn, ends with it. T is the length of the
example's own reference, its end token counted, so that all examples go over at the same pace; the source counts from
one length for all. The pure likelihood that comes first there is the actor's own phase here. The baseline is that of
`reinforce`, which this is in the last stage; with Δ = 0 it is likelihood.

Shapes: B sequences (M samples of an example in a row), T tokens.
"""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import BASELINE, Networks
from seqcritic.methods.experience import gather_experience
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.reinforce import linear_baseline_losses
from seqcritic.settings.base import Count, Section


class MixerSettings(Section):
    """How fast REINFORCE takes over from the sequence's end."""

    step: Count = Field(
        2, description="Δ: tokens that go over to REINFORCE at each stage; 2 in the source, 3 for its translation"
    )


def likelihood_steps(length: int, step: int, progress: float) -> int:
    """Return s: how many of a reference's tokens are learned by likelihood."""
    if step == 0:
        return length
    # Stages are equal parts of the phase, and there is no stage without REINFORCE: likelihood had a phase of its own.
    stage = 1 + math.floor(progress * math.ceil(length / step))
    return max(0, length - step * stage)


@register_method
class Mixer(RewardMethod):
    """The reference's first tokens are given and learned by likelihood, what follows is drawn and rewarded."""

    name = "mixer"
    Settings = MixerSettings
    traits = Traits(1.5, 2.1)
    needs = (BASELINE,)
    trains: tuple[str, ...] = ("actor", "baseline")
    own: MixerSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the actor's loss plus the baseline's squared error."""
        given = self._num_given(batch, progress)
        seen = gather_experience(networks, batch, self.settings, self.score, self.shaping, generator, num_given=given)
        token_log_probabilities, mask = seen.token_log_probabilities, seen.rollout.sample.mask
        # Given tokens are part of the sample, so one pass of the actor serves both terms.
        is_given = torch.arange(mask.shape[1], device=mask.device) < given[:, None]
        likelihood = -mean_over_sequences(token_log_probabilities, mask & is_given)
        # Given tokens earn rewards too, but nothing of these is learnt: they were not the actor's choice.
        reinforced, baseline_loss = linear_baseline_losses(networks, seen, token_log_probabilities, mask & ~is_given)
        actor_loss = likelihood + reinforced
        measurements = {
            "actor_loss": actor_loss.detach(),
            "baseline_loss": baseline_loss.detach(),
            "reinforced_fraction": (mask & ~is_given).sum() / mask.sum(),
        }
        return Outcome(
            seen.add_terms(actor_loss, self.settings) + baseline_loss,
            measurements | seen.measurements,
        )

    def _num_given(self, batch: Batch, progress: float) -> Tensor:
        """Return s of every sample, [B·M]."""
        # The end token counts: with Δ = 1 it is all that the first stage draws.
        lengths = batch.reference_mask.sum(dim=1)
        steps = [likelihood_steps(length, self.own.step, progress) for length in lengths.tolist()]
        return torch.tensor(steps, device=lengths.device).repeat_interleave(self.settings.samples)
