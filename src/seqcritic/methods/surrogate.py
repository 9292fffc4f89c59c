"""Several steps from the samples of one batch: what PPO and GRPO share.

    loss = −Σ_t min(ρ_t A_t, clip(ρ_t, 1 − ε, 1 + ε) A_t),   ρ_t = p_θ(ŷ_t | Ŷ_1..t-1) / p_old(ŷ_t | Ŷ_1..t-1)

p_old is the actor that drew the samples, before the first step. There ρ = 1, and the gradient is that of REINFORCE with
the advantages A. In later steps the samples are scored again by the actor as it is then. What has gone more than ε in
the direction of its advantage has no gradient any more. Each step is one of the whole batch: there are no minibatches.

Shapes: B sequences, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.methods.experience import Experience, Scored, score_again
from seqcritic.methods.losses import clipped_loss
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.settings.methods import MethodSettings


class Pass(NamedTuple):
    """The actor's view of the samples before one of the steps: log p(ŷ_t) [B, T] now, and when they were drawn."""

    scored: Scored
    token_log_probabilities: Tensor
    old_log_probabilities: Tensor  # a constant


def passes(
    networks: Networks,
    batch: Batch,
    seen: Experience,
    settings: MethodSettings,
    generator: torch.Generator,
    count: int,
) -> Iterator[Pass]:
    """Yield the actor's view of its own samples before each of `count` steps, made when it is asked for."""
    # The first pass is that of the samples themselves: its ratio is 1 and its gradient that of REINFORCE.
    first = seen.token_log_probabilities
    old = first.detach()
    yield Pass(seen, first, old)
    for _ in range(count - 1):
        # Only now, when asked for: the actor's weights have moved since the pass before.
        scored = score_again(networks, batch, seen, settings, generator)
        yield Pass(scored, token_log_probabilities(scored.logits, seen.rollout.sample.tokens), old)


def surrogate(step: Pass, advantages: Tensor, mask: Tensor, clip: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the clipped loss with advantages [B, T] or [B, 1], and what to log: the loss and the fraction clipped."""
    loss = clipped_loss(step.token_log_probabilities, step.old_log_probabilities, advantages, mask, clip)
    ratios = (step.token_log_probabilities.detach() - step.old_log_probabilities).exp()
    # Clipped is only what has gone too far in the direction of its advantage; back is always free.
    beyond = torch.where(advantages > 0, ratios > 1 + clip, (ratios < 1 - clip) & (advantages < 0))
    return loss, {"actor_loss": loss.detach(), "clipped_share": (beyond & mask).sum() / mask.sum()}
