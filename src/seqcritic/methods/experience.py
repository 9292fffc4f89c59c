"""What methods that learn from predictions share: sample, score predictions and references in one pass of the actor.

Shapes: B examples, M samples each, T tokens, V vocabulary, H actor state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.actor import Actor, Masks, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Score
from seqcritic.methods.masked_losses import sampled_log_probabilities, token_log_probabilities
from seqcritic.methods.rollout import Draw, Rollout, roll_out
from seqcritic.methods.terms import Anchored, LikelihoodTerm, Terms, likelihood_term, prepare_terms
from seqcritic.settings.methods import MethodSettings
from seqcritic.tensors import rows as rows_of
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.plain_loops import plain_loops


class Compared(NamedTuple):
    """The prefixes at which the actor is compared with the anchor: tokens and mask [B·M, T], and logits [N, V].

    `logits` is None where they are those of the scored tokens.
    """

    tokens: Tensor
    mask: Tensor
    logits: Packed | None = None


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The trained actor's view of some tokens and, where they were asked for, of the references."""

    actor: Actor
    features: Packed  # [N, F], of tokens [B·M, T]
    states: Tensor  # [B·M, T, H], detached
    reference_logits: Packed | None = None  # [N', V], of references [B, U], where they were asked for
    reference_log_probabilities: Tensor | None = None  # [B, U], log p(y_t | Y_1..t-1), 0 on padding
    likelihood: LikelihoodTerm | None = None
    compared: Compared  # with the anchor, where there is one
    anchor: Anchored | None = None

    @cached_property
    def logits(self) -> Packed:
        """The logits [N, V] of the tokens, made when they are first asked for."""
        return self.actor.logits_of(self.features)

    def add_terms(self, loss: Tensor, settings: MethodSettings) -> Tensor:
        """Return a method's own loss of the actor + λ_LL × likelihood loss + λ_KL × divergence from the anchor."""
        if self.likelihood is not None and settings.likelihood_weight > 0:
            loss = loss + settings.likelihood_weight * self.likelihood.loss
        return loss if self.divergence is None else loss + settings.kl_weight * self.divergence

    def term_measurements(self) -> dict[str, Tensor]:
        """Return what to log of the terms, where there are any."""
        likelihood = {} if self.likelihood is None else self.likelihood.measurements
        return likelihood if self.divergence is None else likelihood | {"kl_divergence": self.divergence.detach()}

    @cached_property
    def divergence(self) -> Tensor | None:
        """Σ_t KL of the actor from the anchor, where there is one."""
        if self.anchor is None:
            return None
        tokens, mask, logits = self.compared
        return self.anchor.divergence(self.logits if logits is None else logits, tokens, mask)


@dataclass(frozen=True, kw_only=True)
class Experience(Scored):
    """Samples with their rewards, and the trained actor's view of them."""

    rollout: Rollout
    memory: Memory  # what the samples were drawn from, one row an example, a constant
    masks: Masks | None  # what was dropped in drawing and in scoring
    own_samples: bool  # drawn by the trained actor as it scores them
    rollout_measurements: dict[str, Tensor]

    @property
    def measurements(self) -> dict[str, Tensor]:
        """What to log of the samples and of the terms."""
        return self.rollout_measurements | self.term_measurements()

    @property
    def token_log_probabilities(self) -> Tensor:
        """log p(ŷ_t | Ŷ_1..t-1) of the sampled tokens, [B·M, T], 0 after the last."""
        sample = self.rollout.sample
        if self.own_samples:
            return sampled_log_probabilities(self.actor, self.features, sample)
        return token_log_probabilities(self.logits, sample.tokens)


def draw_reward_masks(actor: Actor, batch: Batch, settings: MethodSettings, generator: torch.Generator) -> Masks | None:
    """Return the dropout masks with which samples are drawn and scored; None: no dropout."""
    held = settings.reward_dropout == "held" and actor.repeats_masks
    return actor.draw_masks(len(batch), generator) if held else None


def gather_experience(
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
    # Drawn before anything else: the order of draws is part of what a seed means, and a resumed run repeats it.
    masks = draw_reward_masks(actor, batch, settings, generator)
    memory = actor.encode(batch.sources, batch.source_mask, masks)
    terms = prepare_terms(networks, batch, memory, masks, settings, generator)
    with torch.no_grad():
        # A delayed actor drops what the present one drops: it stays a delayed copy of the policy that is trained.
        # Where the sampler is the actor itself its memory serves both, as a constant.
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
    scored = score_beside_references(actor, memory, sample.tokens, sample.mask, batch, terms, with_references)
    # Only then are the probabilities that drew the sample those of the present weights, and need not be made again. The
    # plain form computes everything anew, so that the tests compare two ways of doing it.
    own = sampler is actor and draw is None and not plain_loops()
    return Experience(
        **vars(scored),
        rollout=rollout,
        memory=sampler_memory,
        masks=masks,
        own_samples=own,
        rollout_measurements=rollout.measurements(repeated),
    )


def score_again(
    networks: Networks, batch: Batch, seen: Experience, settings: MethodSettings, generator: torch.Generator
) -> Scored:
    """Let the actor score the samples that it drew before its last steps, with the same units dropped."""
    actor, sample = networks.actor, seen.rollout.sample
    # Encoded anew, since the encoder has learnt too; with other masks the ratio would tell what was dropped, not what
    # was learnt.
    memory = actor.encode(batch.sources, batch.source_mask, seen.masks)
    terms = prepare_terms(networks, batch, memory, seen.masks, settings, generator)
    return score_beside_references(actor, memory, sample.tokens, sample.mask, batch, terms)


def score_beside_references(
    actor: Actor,
    memory: Memory,
    tokens: Tensor,
    mask: Tensor,
    batch: Batch,
    terms: Terms,
    references: bool = False,
    rows: Tensor | None = None,
) -> Scored:
    """Let the actor score tokens [B·M, T], M sequences an example in a row, and where asked the references too.

    Both go through one loop: a step over twice the rows costs far less than two steps. Where the likelihood term has
    another memory than the predictions, it needs a pass of its own. `rows`: the example of each sequence, where they
    are not M of each in a row.
    """
    num_sequences, num_steps = tokens.shape
    memories = rows_of.repeat(memory, num_sequences // len(batch)) if rows is None else rows_of.select(memory, rows)
    # Likelihood keeps its usual dropout where samples are drawn without any: it then reads a memory of its own.
    likelihood = None
    if terms.likelihood is not None and terms.likelihood is not memory:
        own_features, _ = actor.features(terms.likelihood, batch.references, batch.reference_mask)
        likelihood = _likelihood_of(actor.logits_of(own_features), batch, terms)
    # Nothing is asked of the references in this pass: samples alone, in one loop of their own length.
    if not references and terms.likelihood is not memory:
        features, states = actor.features(memories, tokens, mask)
        return Scored(
            actor=actor,
            features=features,
            states=states.detach(),
            likelihood=likelihood,
            anchor=terms.anchor,
            compared=Compared(tokens, mask),
        )
    num_reference_steps = batch.references.shape[1]
    # Both are padded to one width; the mask keeps the padding out of all that is computed.
    width = max(num_steps, num_reference_steps)
    both, both_masks = (
        torch.cat([pad(ours, (0, width - num_steps)), pad(given, (0, width - num_reference_steps))])
        for ours, given in ((tokens, batch.references), (mask, batch.reference_mask))
    )
    features, states = actor.features(rows_of.cat([memories, memory]), both, both_masks)
    reference_logits = actor.logits_of(features.part(num_sequences, len(both), num_reference_steps))
    # Logits of the references are always wanted here; those of the samples wait until a method asks for them.
    reference_log_probabilities = token_log_probabilities(reference_logits, batch.references)
    if likelihood is None:
        likelihood = likelihood_term(
            reference_logits, reference_log_probabilities, batch.reference_mask, terms.label_smoothing
        )
    return Scored(
        actor=actor,
        features=features.part(0, num_sequences, num_steps),
        states=states[:num_sequences, :num_steps].detach(),
        # As large as all else together: where only the likelihood term needs them, they are gone when it is made.
        reference_logits=reference_logits if references else None,
        reference_log_probabilities=reference_log_probabilities,
        likelihood=likelihood,
        anchor=terms.anchor,
        # Sequences that are not so many of each example may be none at all: the references are always there.
        compared=Compared(tokens, mask)
        if rows is None
        else Compared(batch.references, batch.reference_mask, reference_logits),
    )


def _likelihood_of(logits: Packed, batch: Batch, terms: Terms) -> LikelihoodTerm:
    chosen = token_log_probabilities(logits, batch.references)
    return likelihood_term(logits, chosen, batch.reference_mask, terms.label_smoothing)
