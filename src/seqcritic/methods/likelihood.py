"""Maximum likelihood: teacher forcing, the baseline every other method starts from and is compared with.

    loss = −Σ_t log p(y_t | Y_1..t-1, X)

Shapes: B examples, T tokens, V vocabulary.
"""

from __future__ import annotations

import torch

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Method, Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.counted_losses import likelihood_loss
from seqcritic.sections import Section


@register_method
class Likelihood(Method):
    """Train the actor to predict each reference token from the reference tokens before it."""

    name = "likelihood"
    traits = Traits(1.0, 1.0)
    trains: tuple[str, ...] = ("actor",)

    def __init__(self, settings: Section, score: object, shaping: bool) -> None:
        """Take what every method is given; nothing of it has a use here."""

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the negative log-likelihood of the references; draws nothing but what is dropped."""
        actor = networks.actor
        memory = actor.encode(batch.sources, batch.source_mask, actor.draw_masks(len(batch), generator))
        features, _ = actor.features(memory, batch.references, batch.reference_mask)
        loss = likelihood_loss(actor.logits_of(features), batch.references, batch.reference_mask)
        return Outcome(loss, {"likelihood_loss": loss.detach()})
