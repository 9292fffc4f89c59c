"""Scheduled sampling (Bengio et al. 2015): the actor is fed ever more of its own tokens, and asked for the reference's.

    loss = −Σ_t log p(y_t | Z_1..t-1, X),   z_t = y_t with probability ε, else z_t ~ p(· | Z_1..t-1, X)

A coin for every input; no gradient flows through what was drawn. ε falls with the progress of the phase x in [0, 1]:

    linear            ε = 1 − (1 − ε_1) x
    exponential       ε = ε_1^x
    inverse sigmoid   ε = k / (k + e^{x c}),   c = ln(k (1/ε_1 − 1))

ε_1 is reached at the end. The source counts updates, not fractions of a phase; the curves are the same.

Shapes: B examples, T reference tokens, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.draws import choose, draw_numbers, draw_uniform
from seqcritic.methods.experience import score_beside_references
from seqcritic.methods.masked_losses import likelihood_loss
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.terms import prepare_terms
from seqcritic.settings.base import Rate, Section
from seqcritic.settings.bounds import LARGEST


class ScheduledSamplingSettings(Section):
    """How the fraction ε of reference tokens among the inputs decays from the first update of the phase to its last."""

    decay: Literal["linear", "exponential", "inverse-sigmoid"] = Field(
        "inverse-sigmoid", description="the curve of ε, the chance that an input is the reference's token"
    )
    final: Rate = Field(0.25, description="ε at the phase's end; 1 is likelihood")
    steepness: Annotated[float, Field(ge=1, le=LARGEST, allow_inf_nan=False)] = Field(
        100.0, description="k of the inverse sigmoid, which starts at ε = k / (k + 1)"
    )


def reference_probability(settings: ScheduledSamplingSettings, progress: float) -> float:
    """Return ε at a progress from 0 to 1."""
    final, steepness = settings.final, settings.steepness
    if settings.decay == "linear":
        return 1 - (1 - final) * progress
    # At ε_1 = 1 the sigmoid's c would be the logarithm of 0; all curves are 1 there.
    if settings.decay == "exponential" or final == 1:
        return float(final**progress)
    return steepness / (steepness + math.exp(progress * math.log(steepness * (1 / final - 1))))


@torch.no_grad()
def mix_inputs(actor: Actor, memory: Memory, references: Tensor, coins: Tensor, numbers: Tensor) -> Tensor:
    """Return inputs [B, T]: the reference's token where the coin [T, B] is True, else one drawn from the actor.

    `numbers` [T, B] choose what is drawn (draws.py). The last input is never consumed: it stays the
    reference's.
    """
    # Then nothing of the actor's is an input, and its loop over the steps is spared.
    if bool(coins.all()):
        return references
    inputs = references.clone()
    state = actor.start(memory)
    for step in range(references.shape[1] - 1):
        # Drawn at every step and used where the coin says so: the stream of numbers does not depend on the coins.
        drawn = choose(torch.softmax(actor.logits(state), dim=1), numbers[step])
        inputs[:, step] = torch.where(coins[step], references[:, step], drawn)
        state = actor.step(memory, state, inputs[:, step])
    return inputs


@register_method
class ScheduledSampling(RewardMethod):
    """Likelihood of the references after inputs that are partly the actor's own; no reward."""

    name = "scheduled-sampling"
    Settings = ScheduledSamplingSettings
    traits = Traits(1.3, 1.8)
    trains: tuple[str, ...] = ("actor",)
    own: ScheduledSamplingSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the negative log-likelihood of the references given the mixed inputs."""
        actor, references = networks.actor, batch.references
        probability = reference_probability(self.own, progress)
        # What is drawn is an input, not a prediction to be rewarded; it has the masks of the loss all the same.
        masks = actor.draw_masks(len(batch), generator)
        memory = actor.encode(batch.sources, batch.source_mask, masks)
        size = (references.shape[1], len(batch))
        coins = (draw_uniform(generator, *size) < probability).to(references.device)
        numbers = draw_numbers(generator, *size).to(references.device)
        # No gradient through it: the loss is that of the references, given these inputs as they are.
        inputs = mix_inputs(actor, memory, references, coins, numbers)
        terms = prepare_terms(networks, batch, memory, masks, self.settings, generator)
        scored = score_beside_references(actor, memory, inputs, batch.reference_mask, batch, terms)
        loss = likelihood_loss(scored.logits, references, batch.reference_mask)
        measurements = {"actor_loss": loss.detach(), "reference_probability": loss.new_tensor(probability)}
        return Outcome(scored.add_terms(loss, self.settings), measurements | scored.term_measurements())
