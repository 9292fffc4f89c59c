"""What is added to the loss of any method but likelihood itself, as the settings ask: the likelihood term.

    loss + λ_LL L_LL,   L_LL = −Σ_t [(1 − ε) log p(y_t | Y_1..t-1) + ε/V Σ_a log p(a | Y_1..t-1)]

Shapes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.contracts.actor import Masks, Memory
from seqcritic.contracts.networks import Networks
from seqcritic.data.batch import Batch
from seqcritic.method_settings import MethodSettings
from seqcritic.methods.counted_losses import smoothed_loss
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.tensors.packed import Packed


class LikelihoodTerm(NamedTuple):
    """A loss of references, and what to log of it."""

    loss: Tensor
    measurements: dict[str, Tensor]


def likelihood_term(logits: Packed, taken: Tensor, mask: Tensor, smoothing: float) -> LikelihoodTerm:
    """Return the loss of references whose log p(y_t) [B, T] are known, their labels smoothed by ε.

    `likelihood_loss` is logged without smoothing, so that runs can be compared; what is minimised, beside it.
    """
    plain = -mean_over_sequences(taken, mask)
    if smoothing == 0:
        return LikelihoodTerm(plain, {"likelihood_loss": plain.detach()})
    loss = smoothed_loss(logits, taken, mask, smoothing)
    return LikelihoodTerm(loss, {"likelihood_loss": plain.detach(), "smoothed_loss": loss.detach()})


@dataclass(frozen=True)
class Terms:
    """What the terms of one batch are made from."""

    likelihood: Memory | None = None  # None: no likelihood term
    label_smoothing: float = 0.0


def prepare_terms(
    networks: Networks,
    batch: Batch,
    memory: Memory,
    masks: Masks | None,
    settings: MethodSettings,
    generator: torch.Generator,
) -> Terms:
    """Return what the terms are made from, where the actor's memory of the batch has these dropout masks.

    The likelihood term has that memory, or one with masks where the rewards have none.
    """
    likelihood = None
    if settings.likelihood_weight > 0:
        own = networks.actor.draw_masks(len(batch), generator) if masks is None else None
        likelihood = memory if own is None else networks.actor.encode(batch.sources, batch.source_mask, own)
    return Terms(likelihood, settings.label_smoothing)
