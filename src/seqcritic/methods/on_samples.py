"""What methods that learn from predictions share: sample, score predictions and references in one pass of the actor.

Shapes: B examples, M samples each, T tokens, V vocabulary, H actor state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.data.batch import Batch
from seqcritic.data.vocabulary import END
from seqcritic.method_settings import MethodSettings
from seqcritic.methods.losses import likelihood_loss
from seqcritic.methods.networks import Networks
from seqcritic.methods.rollout import Draw, Rollout, roll_out
from seqcritic.models.actor import Actor
from seqcritic.models.attention import Memory
from seqcritic.scores.score import Score


class Scored(NamedTuple):
    """The trained actor's view of given tokens, with gradients, and the likelihood loss where it is wanted."""

    logits: Tensor  # [B·M, T, V]
    states: Tensor  # [B·M, T, H]
    likelihood_loss: Tensor | None

    def add_likelihood(self, loss: Tensor, weight: float) -> Tensor:
        """Return loss + λ_LL × likelihood loss."""
        return loss if self.likelihood_loss is None else loss + weight * self.likelihood_loss

    def measurements(self) -> dict[str, Tensor]:
        """Return the likelihood loss, where there is one, to log."""
        return {} if self.likelihood_loss is None else {"likelihood_loss": self.likelihood_loss.detach()}


@dataclass(frozen=True)
class Experience:
    """Samples with their rewards, and the trained actor's view of them."""

    rollout: Rollout
    scored: Scored
    measurements: dict[str, Tensor]

    @property
    def logits(self) -> Tensor:
        """[B·M, T, V] of the trained actor on the sampled tokens."""
        return self.scored.logits

    @property
    def states(self) -> Tensor:
        """[B·M, T, H], detached."""
        return self.scored.states.detach()

    def add_likelihood(self, loss: Tensor, weight: float) -> Tensor:
        """Return loss + λ_LL × likelihood loss."""
        return self.scored.add_likelihood(loss, weight)


def experience(
    networks: Networks,
    batch: Batch,
    settings: MethodSettings,
    score: Score,
    shaping: bool,
    generator: torch.Generator,
    draw: Draw | None = None,
) -> Experience:
    """Sample M predictions an example and let the actor score them, and the references where λ_LL > 0."""
    actor, sampler = networks.actor, networks.sampling_actor
    memory = actor.encode(batch.sources, batch.source_mask)
    with torch.no_grad():
        sampler_memory = (
            Memory(*(field.detach() for field in memory))
            if sampler is actor
            else sampler.encode(batch.sources, batch.source_mask)
        )
    repeated = batch.repeat(settings.samples)
    rollout = roll_out(
        sampler,
        sampler_memory.repeat(settings.samples),
        repeated,
        score,
        shaping,
        generator,
        settings.num_further,
        settings.temperature,
        draw,
    )
    tokens = rollout.sample.tokens
    measurements = rollout.measurements(repeated)
    seen = score_tokens(actor, memory, tokens, batch, settings.likelihood_weight)
    return Experience(rollout, seen, measurements | seen.measurements())


def score_tokens(actor: Actor, memory: Memory, tokens: Tensor, batch: Batch, likelihood_weight: float) -> Scored:
    """Score M token sequences an example [B·M, T], and the references where λ_LL > 0; `memory` is not repeated."""
    repeated = memory.repeat(len(tokens) // len(batch))
    if likelihood_weight == 0:
        return Scored(*actor.score(repeated, tokens), None)
    logits, states, reference_logits = score_beside_references(actor, repeated, tokens, memory, batch.references)
    log_probabilities = torch.log_softmax(reference_logits, dim=2)
    return Scored(logits, states, likelihood_loss(log_probabilities, batch.references, batch.reference_mask))


def score_beside_references(
    actor: Actor, memory: Memory, tokens: Tensor, reference_memory: Memory, references: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits and states of tokens [N, T] and the logits of references [B, U], scored in one loop.

    A step over twice the rows costs far less than two steps.
    """
    num_samples, num_steps = tokens.shape
    num_reference_steps = references.shape[1]
    width = max(num_steps, num_reference_steps)
    both = torch.cat(
        [
            pad(tokens, (0, width - num_steps), value=END),
            pad(references, (0, width - num_reference_steps), value=END),
        ]
    )
    logits, states = actor.score(Memory.stack(memory, reference_memory), both)
    return (
        logits[:num_samples, :num_steps],
        states[:num_samples, :num_steps],
        logits[num_samples:, :num_reference_steps],
    )
