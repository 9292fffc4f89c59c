"""Reward-augmented maximum likelihood (Norouzi et al. 2016): likelihood of targets drawn near the reference.

    loss = −Σ_t log p(ỹ_t | Ỹ_1..t-1, X),   Ỹ ~ q(Ỹ | Y) ∝ exp(−d(Ỹ, Y) (1 + ln v) / τ)

A target that scores better is drawn more often. q is the distribution that maximises the expected score plus τ times
its own entropy, and the actor is drawn towards it; nothing is sampled from the actor. As in the source the score is
minus the edit distance, whatever score the run is evaluated by. The factor 1 + ln v, from the first author's published
sampler, makes one τ fit vocabularies of v tokens of any size. The sampler is exact (edited_targets.py).

Shapes: B examples, M targets each, T tokens.
"""

from __future__ import annotations

import torch
from pydantic import Field

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.edited_targets import draw_edited
from seqcritic.methods.experience import score_beside_references
from seqcritic.methods.masked_losses import likelihood_loss
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.terms import prepare_terms
from seqcritic.scores.edit_distance import prefix_distances
from seqcritic.settings.base import Fraction, Section


class RamlSettings(Section):
    """How far the targets are from the references."""

    temperature: Fraction = Field(
        0.85, description="τ of exp(−d (1 + ln v) / τ), d the edit distance, v the number of tokens; 0 is likelihood"
    )


@register_method
class Raml(RewardMethod):
    """Train the actor on edited references."""

    name = "raml"
    Settings = RamlSettings
    traits = Traits(1.4, 1.9)
    trains: tuple[str, ...] = ("actor",)
    own: RamlSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the negative log-likelihood of the drawn targets."""
        actor, settings = networks.actor, self.settings
        repeated = batch.repeat(settings.samples)
        special = actor.special
        reference_lengths = special.lengths(repeated.references, repeated.reference_mask)
        # The sampler numbers the tokens that an answer may be made of from 1 on; 0 stands after the end.
        ordinary = special.ordinary(actor.num_tokens).to(repeated.references.device)
        numbered = torch.searchsorted(ordinary, repeated.references) + 1
        numbered = numbered.masked_fill(~repeated.reference_mask | special.is_end(repeated.references), 0)
        edited, lengths = draw_edited(numbered, reference_lengths, len(ordinary), self.own.temperature, generator)
        # Back from numbers to ids, 0 being padding.
        tokens = torch.cat([ordinary.new_tensor([special.padding]), ordinary])[edited]
        # One place more, for the end token of the longest.
        targets = torch.nn.functional.pad(tokens, (0, 1), value=special.padding)
        targets = targets.scatter(1, lengths[:, None], special.end[0])
        mask = torch.arange(targets.shape[1], device=targets.device) <= lengths[:, None]
        masks = actor.draw_masks(len(batch), generator)
        memory = actor.encode(batch.sources, batch.source_mask, masks)
        terms = prepare_terms(networks, batch, memory, masks, settings, generator)
        scored = score_beside_references(actor, memory, targets, mask, batch, terms)
        loss = likelihood_loss(scored.logits, targets, mask)
        # Of numbers, as they were drawn: ids of both would be as far apart.
        distances = prefix_distances(edited, numbered, reference_lengths)
        # They are 16-bit integers, which have no mean.
        distance = distances.gather(1, lengths[:, None]).to(loss.dtype).mean()
        measurements = {"actor_loss": loss.detach(), "target_distance": distance}
        return Outcome(scored.add_terms(loss, settings), measurements | scored.term_measurements())
