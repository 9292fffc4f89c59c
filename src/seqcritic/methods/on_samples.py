"""What methods that learn from predictions share: sample, score predictions and references in one pass of the actor.

Shapes: B examples, M samples each, T tokens, V vocabulary, H actor state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.actor import Actor, Masks, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Score
from seqcritic.method_settings import MethodSettings
from seqcritic.methods.counted_losses import likelihood_loss, log_taken, sampled_log_taken
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.rollout import Draw, Rollout, roll_out
from seqcritic.models.recurrence import plain_loops
from seqcritic.tensors import rows as rows_of
from seqcritic.tensors.packed import Packed


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The trained actor's view of some tokens and, where they were asked for, of the references."""

    actor: Actor
    features: Packed  # [N, F], of tokens [B·M, T]
    states: Tensor  # [B·M, T, H], detached
    reference_logits: Packed | None = None  # [N', V], of references [B, U]
    reference_log_taken: Tensor | None = None  # [B, U], log p(y_t | Y_1..t-1), 0 on padding
    likelihood_loss: Tensor | None = None

    @cached_property
    def logits(self) -> Packed:
        """The logits [N, V] of the tokens, made when they are first asked for."""
        return self.actor.logits_of(self.features)

    def add_likelihood(self, loss: Tensor, weight: float) -> Tensor:
        """Return loss + λ_LL × likelihood loss."""
        return loss if self.likelihood_loss is None or weight == 0 else loss + weight * self.likelihood_loss

    def likelihood_measurement(self) -> dict[str, Tensor]:
        """Return the likelihood loss to log, where there is one."""
        return {} if self.likelihood_loss is None else {"likelihood_loss": self.likelihood_loss.detach()}


@dataclass(frozen=True, kw_only=True)
class Experience(Scored):
    """Samples with their rewards, and the trained actor's view of them."""

    rollout: Rollout
    memory: Memory  # what the samples were drawn from, one row an example, a constant
    own_samples: bool  # drawn by the trained actor as it scores them
    measurements: dict[str, Tensor]

    @property
    def log_taken(self) -> Tensor:
        """log p(ŷ_t | Ŷ_1..t-1) of the sampled tokens, [B·M, T], 0 after the last."""
        sample = self.rollout.sample
        if self.own_samples:
            return sampled_log_taken(self.actor, self.features, sample)
        return log_taken(self.logits, sample.tokens)


def draw_reward_masks(actor: Actor, batch: Batch, settings: MethodSettings, generator: torch.Generator) -> Masks | None:
    """Return what is dropped where rewards are learnt from, in drawing as in scoring; None: nothing."""
    held = settings.reward_dropout == "held" and actor.repeats_masks
    return actor.draw_masks(len(batch), generator) if held else None


def encode_for_likelihood(
    actor: Actor,
    batch: Batch,
    memory: Memory,
    masks: Masks | None,
    settings: MethodSettings,
    generator: torch.Generator,
) -> Memory | None:
    """Return the memory of the likelihood term: that of the rewards, or one with masks where the rewards have none.

    None where λ_LL is 0.
    """
    if settings.likelihood_weight == 0:
        return None
    own = actor.draw_masks(len(batch), generator) if masks is None else None
    return memory if own is None else actor.encode(batch.sources, batch.source_mask, own)


def experience(
    networks: Networks,
    batch: Batch,
    settings: MethodSettings,
    score: Score,
    shaping: bool,
    generator: torch.Generator,
    *,
    samples: int | None = None,
    num_given: Tensor | None = None,
    with_references: bool = False,
    draw: Draw | None = None,
) -> Experience:
    """Sample M predictions an example and let the actor score them, and the references where λ_LL > 0.

    `samples`: M where it is not that of the settings; `num_given` [B·M]: how many tokens of its reference each sample
    begins with; `with_references`: score the references whatever λ_LL is; `draw`: what draws instead of the actor.
    """
    actor, sampler = networks.actor, networks.sampling_actor
    repeats = settings.samples if samples is None else samples
    masks = draw_reward_masks(actor, batch, settings, generator)
    memory = actor.encode(batch.sources, batch.source_mask, masks)
    likelihood = encode_for_likelihood(actor, batch, memory, masks, settings, generator)
    with torch.no_grad():
        # A delayed actor drops what the present one drops: it stays a delayed copy of the policy that is trained.
        sampler_memory = (
            rows_of.detach(memory) if sampler is actor else sampler.encode(batch.sources, batch.source_mask, masks)
        )
    repeated = batch.repeat(repeats)
    rollout = roll_out(
        sampler,
        rows_of.repeat(sampler_memory, repeats),
        repeated,
        score,
        shaping,
        generator,
        num_given,
        num_further=settings.num_further,
        temperature=settings.temperature,
        draw=draw,
    )
    sample = rollout.sample
    scored = score_beside_references(actor, memory, sample.tokens, sample.mask, batch, with_references, likelihood)
    measurements = rollout.measurements(repeated) | scored.likelihood_measurement()
    own = sampler is actor and draw is None and not plain_loops()
    return Experience(
        **vars(scored), rollout=rollout, memory=sampler_memory, own_samples=own, measurements=measurements
    )


def score_beside_references(
    actor: Actor,
    memory: Memory,
    tokens: Tensor,
    mask: Tensor,
    batch: Batch,
    references: bool,
    likelihood: Memory | None = None,
    rows: Tensor | None = None,
) -> Scored:
    """Let the actor score tokens [B·M, T], M sequences an example in a row, and where asked the references too.

    Both go through one loop: a step over twice the rows costs far less than two steps. `likelihood`: the memory of the
    likelihood term, None for none; where it is another than that of the predictions, it needs a pass of its own.
    `rows`: the example of each sequence, where they are not M of each in a row.
    """
    num_sequences, num_steps = tokens.shape
    memories = rows_of.repeat(memory, num_sequences // len(batch)) if rows is None else rows_of.select(memory, rows)
    of_likelihood = None
    if likelihood is not None and likelihood is not memory:
        own_features, _ = actor.features(likelihood, batch.references, batch.reference_mask)
        of_likelihood = likelihood_loss(actor.logits_of(own_features), batch.references, batch.reference_mask)
    if not references and likelihood is not memory:
        features, states = actor.features(memories, tokens, mask)
        return Scored(actor=actor, features=features, states=states.detach(), likelihood_loss=of_likelihood)
    num_reference_steps = batch.references.shape[1]
    width = max(num_steps, num_reference_steps)
    both, both_masks = (
        torch.cat([pad(ours, (0, width - num_steps)), pad(given, (0, width - num_reference_steps))])
        for ours, given in ((tokens, batch.references), (mask, batch.reference_mask))
    )
    features, states = actor.features(rows_of.cat([memories, memory]), both, both_masks)
    reference_logits = actor.logits_of(features.part(num_sequences, len(both), num_reference_steps))
    reference_log_taken = log_taken(reference_logits, batch.references)
    return Scored(
        actor=actor,
        features=features.part(0, num_sequences, num_steps),
        states=states[:num_sequences, :num_steps].detach(),
        reference_logits=reference_logits,
        reference_log_taken=reference_log_taken,
        likelihood_loss=-mean_over_sequences(reference_log_taken, batch.reference_mask)
        if of_likelihood is None
        else of_likelihood,
    )
