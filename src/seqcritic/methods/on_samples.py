"""What actor-critic and REINFORCE share: sample, score the samples and the references in one pass of the actor.

Shapes: B examples, M samples each, T tokens, V vocabulary, H actor state.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Experience:
    """Samples with their rewards, and the trained actor's view of them."""

    rollout: Rollout
    logits: Tensor  # [B·M, T, V] of the trained actor on the sampled tokens
    states: Tensor  # [B·M, T, H], detached
    likelihood_loss: Tensor | None
    measurements: dict[str, Tensor]

    def add_likelihood(self, loss: Tensor, weight: float) -> Tensor:
        """Return loss + λ_LL × likelihood loss."""
        return loss if self.likelihood_loss is None else loss + weight * self.likelihood_loss


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
    if settings.likelihood_weight == 0:
        logits, states = actor.score(memory.repeat(settings.samples), tokens)
        return Experience(rollout, logits, states.detach(), None, measurements)
    logits, reference_logits, states = _score_both(actor, memory, tokens, batch.references)
    likelihood = likelihood_loss(torch.log_softmax(reference_logits, dim=2), batch.references, batch.reference_mask)
    measurements["likelihood_loss"] = likelihood.detach()
    return Experience(rollout, logits, states.detach(), likelihood, measurements)


def _score_both(actor: Actor, memory: Memory, tokens: Tensor, references: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Score samples and references in one loop: a step over twice the rows costs far less than two steps."""
    num_samples, num_steps = tokens.shape
    num_references, num_reference_steps = references.shape
    width = max(num_steps, num_reference_steps)
    both = torch.cat(
        [
            pad(tokens, (0, width - num_steps), value=END),
            pad(references, (0, width - num_reference_steps), value=END),
        ]
    )
    stacked = Memory.stack(memory.repeat(num_samples // num_references), memory)
    logits, states = actor.score(stacked, both)
    return (
        logits[:num_samples, :num_steps],
        logits[num_samples:, :num_reference_steps],
        states[:num_samples, :num_steps],
    )
