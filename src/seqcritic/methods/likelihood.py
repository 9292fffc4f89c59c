"""Maximum likelihood: teacher forcing, the baseline every other method starts from and is compared with.

    loss = −Σ_t log p(y_t | Y_1..t-1, X)

With `method.label_smoothing` = ε (Szegedy et al. 2016) so much of each label is spread over all V tokens that the
actor may say:

    loss = −Σ_t [(1 − ε) log p(y_t | Y_1..t-1, X) + ε/V Σ_a log p(a | Y_1..t-1, X)]

Shapes: B examples, T tokens, V vocabulary.
"""

from __future__ import annotations

import torch

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Method, Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.methods.terms import likelihood_term
from seqcritic.settings.methods import MethodSettings


@register_method
class Likelihood(Method):
    """Train the actor to predict each reference token from the reference tokens before it."""

    name = "likelihood"
    traits = Traits(1.0, 1.0)
    trains: tuple[str, ...] = ("actor",)

    def __init__(self, settings: MethodSettings, score: object, shaping: bool) -> None:
        """Take what every method is given; the score has no use here."""
        self.settings = settings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the negative log-likelihood of the references; draws nothing but what is dropped."""
        actor, smoothing = networks.actor, self.settings.label_smoothing
        memory = actor.encode(batch.sources, batch.source_mask, actor.draw_masks(len(batch), generator))
        features, _ = actor.features(memory, batch.references, batch.reference_mask)
        logits = actor.logits_of(features)
        return Outcome(
            *likelihood_term(logits, token_log_probabilities(logits, batch.references), batch.reference_mask, smoothing)
        )
