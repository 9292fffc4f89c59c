"""What is added to the loss of any method but likelihood itself, as the settings ask.

    loss + λ_LL L_LL + λ_KL Σ_t KL(p_θ(· | Ŷ_1..t-1) ‖ p_0(· | Ŷ_1..t-1))

L_LL is the likelihood term, its labels smoothed by ε. p_0 is the anchor: the actor as the phase found it, frozen. The
divergence is summed over the whole vocabulary, not estimated from the chosen token, at the prefixes of what the
method scores (of the references, where that may be nothing). Prefixes are constants: the gradient is that of every
step's divergence, not of how often a prefix is reached. For the actor's own samples the expected sum is the divergence
of the distributions of whole sequences.

Shapes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Masks, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.masked_losses import divergences, log_probabilities, smoothed_loss
from seqcritic.settings.methods import MethodSettings
from seqcritic.tensors import rows as rows_of
from seqcritic.tensors.packed import Packed


class LikelihoodTerm(NamedTuple):
    """A loss of references, and what to log of it."""

    loss: Tensor
    measurements: dict[str, Tensor]


def likelihood_term(logits: Packed, chosen: Tensor, mask: Tensor, smoothing: float) -> LikelihoodTerm:
    """Return the loss of references whose log p(y_t) [B, T] are known, their labels smoothed by ε.

    `likelihood_loss` is logged without smoothing, so that runs can be compared; what is minimised, beside it.
    """
    plain = -mean_over_sequences(chosen, mask)
    if smoothing == 0:
        return LikelihoodTerm(plain, {"likelihood_loss": plain.detach()})
    loss = smoothed_loss(logits, chosen, mask, smoothing)
    return LikelihoodTerm(loss, {"likelihood_loss": plain.detach(), "smoothed_loss": loss.detach()})


@dataclass(frozen=True)
class Anchored:
    """The anchor and its memory of a batch, one row an example."""

    actor: Actor
    memory: Memory
    num_examples: int

    def divergence(self, logits: Packed, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return Σ_t KL(p ‖ p_0), averaged over sequences [B·M, T] whose logits are the trained actor's."""
        with torch.no_grad():
            # M sequences of an example stand in a row; the anchor has read its source once for all of them.
            memory = rows_of.repeat(self.memory, len(tokens) // self.num_examples)
            features, _ = self.actor.features(memory, tokens, mask)
            # Its logits have no name here: they are gone before the divergence makes more of their size.
            of_anchor = log_probabilities(self.actor.logits_of(features))
        return mean_over_sequences(divergences(logits, of_anchor), mask)


@dataclass(frozen=True)
class Terms:
    """What the terms of one batch are made from."""

    likelihood: Memory | None = None  # None: no likelihood term
    label_smoothing: float = 0.0
    anchor: Anchored | None = None  # None: no penalty


def prepare_terms(
    networks: Networks,
    batch: Batch,
    memory: Memory,
    masks: Masks | None,
    settings: MethodSettings,
    generator: torch.Generator,
) -> Terms:
    """Return the memories that the terms need; `masks` are the dropout masks of the actor's `memory`.

    The likelihood term has that memory, or one with masks where the rewards have none. The anchor drops what the actor
    drops: the policies that are compared differ in their weights alone.
    """
    likelihood = anchor = None
    if settings.likelihood_weight > 0:
        # Masks that the rewards hold serve this term as well: one memory, one pass.
        own = networks.actor.draw_masks(len(batch), generator) if masks is None else None
        likelihood = memory if own is None else networks.actor.encode(batch.sources, batch.source_mask, own)
    if settings.kl_weight > 0:
        assert networks.anchor is not None, "settings name it among the networks"
        with torch.no_grad():
            # One row an example; samples of it share that row when they are compared.
            known = networks.anchor.encode(batch.sources, batch.source_mask, masks)
        anchor = Anchored(networks.anchor, known, len(batch))
    return Terms(likelihood, settings.label_smoothing, anchor)
