"""The networks a method may use, and the followers' rule."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.critic import Critic


@dataclass
class Networks:
    """The actor, and what the method trains beside it; None where the method has no use for it."""

    actor: Actor
    delayed_actor: Actor | None = None
    critic: Critic | None = None
    target_critic: Critic | None = None
    baseline: nn.Module | None = None

    def named(self) -> dict[str, nn.Module]:
        """Return the networks that exist, by name."""
        return {name: network for name, network in vars(self).items() if network is not None}

    @property
    def sampling_actor(self) -> Actor:
        """The actor that predictions are drawn from: the delayed one where there is one."""
        return self.actor if self.delayed_actor is None else self.delayed_actor


@torch.no_grad()
def follow(follower: nn.Module, leader: nn.Module, speed: float) -> None:
    """θ' = γ θ + (1 − γ) θ'."""
    ours: list[Tensor] = list(follower.parameters())
    theirs: list[Tensor] = list(leader.parameters())
    torch._foreach_mul_(ours, 1 - speed)
    torch._foreach_add_(ours, theirs, alpha=speed)
