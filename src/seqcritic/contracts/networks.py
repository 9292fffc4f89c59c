"""The networks a method may use, how it says which it needs, and the rule by which target copies follow."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from itertools import compress
from typing import TypeVar

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.critic import Critic

AT_ONCE = 1 << 17  # numbers of a weight that a copy follows at once

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class NetworkSpec:
    """A network that a method needs beside the actor: the critic, the baseline, or a target copy of another network.

    A copy starts each phase as what it is a copy of, and follows it at `rate` after every optimiser step that moves
    that: a number, or the name of the setting under `method` that holds it. A copy at rate 0 stays as the phase found
    it. A copy that is `spared_at_one` is not made where the rate is 1, at which it would be the network itself.
    """

    name: str
    copy_of: str | None = None
    rate: float | str = 0.0
    spared_at_one: bool = False

    def __post_init__(self) -> None:
        if self.copy_of is None and self.name not in ("critic", "baseline"):
            raise ValueError(f"a network '{self.name}' is neither the critic, nor the baseline, nor a copy of another")


CRITIC = NetworkSpec("critic")
TARGET_CRITIC = NetworkSpec("target_critic", copy_of="critic", rate="gamma_phi")
DELAYED_ACTOR = NetworkSpec("delayed_actor", copy_of="actor", rate="effective_gamma_theta", spared_at_one=True)
BASELINE = NetworkSpec("baseline")
ANCHOR = NetworkSpec("anchor", copy_of="actor")  # with method.kl_weight, of every method but likelihood


@dataclass
class Networks:
    """The actor, and what the method needs beside it; None where the method has no use for it.

    `others`: copies under names of the method's own.
    """

    actor: Actor
    delayed_actor: Actor | None = None
    critic: Critic | None = None
    target_critic: Critic | None = None
    baseline: nn.Module | None = None
    anchor: Actor | None = None
    others: dict[str, nn.Module] = field(default_factory=dict)

    def named(self) -> dict[str, nn.Module]:
        """Return the networks that exist, by name."""
        # None is left out, and `others`, which is a dictionary.
        known = {name: network for name, network in vars(self).items() if isinstance(network, nn.Module)}
        return known | self.others

    def __getitem__(self, name: str) -> nn.Module:
        """Return the network of a name."""
        return self.named()[name]

    def __setitem__(self, name: str, network: nn.Module) -> None:
        """Give a network its place."""
        if name in vars(self):
            setattr(self, name, network)
        else:
            self.others[name] = network

    @property
    def sampling_actor(self) -> Actor:
        """The actor that predictions are drawn from: the delayed one where there is one."""
        return self.actor if self.delayed_actor is None else self.delayed_actor


def untrained_names(network: nn.Module) -> frozenset[str]:
    """Return the names of the weights of a network that nothing trains and that its copies share."""
    return network.untrained if isinstance(network, Actor) else frozenset()


def trained_weights(network: nn.Module) -> list[Tensor]:
    """Return the weights of a network but for those that nothing trains."""
    untrained = untrained_names(network)
    return [weight for name, weight in network.named_parameters() if name not in untrained]


def copy_network(network: Network) -> Network:
    """Return a copy with weights of its own, but for those that nothing trains: they are the same tensors."""
    untrained = untrained_names(network)
    shared: dict[int, object] = {id(each): each for name, each in network.named_parameters() if name in untrained}
    if shared:
        # What a network makes anew, tables of positions for example, is shared too; what is stored is a copy's own.
        stored = network.state_dict()
        shared |= {id(buffer): buffer for name, buffer in network.named_buffers() if name not in stored}
    # As deepcopy's memo: what is found in it by its id counts as copied already.
    return copy.deepcopy(network, shared)


@torch.no_grad()
def polyak_update(target: nn.Module, online: nn.Module, rate: float) -> None:
    """θ' = γ θ + (1 − γ) θ' of the weights that are trained.

    Buffers, such as running means or tables, are copied as they are.
    """
    ours, theirs = trained_weights(target), trained_weights(online)  # in one order: the target is a copy
    # What is spread over processes is of a type of its own, and cut already.
    large = [each.numel() > AT_ONCE and type(each) in (Tensor, nn.Parameter) for each in ours]
    pairs = list(zip(ours, theirs, strict=True))
    few = [pair for pair, is_large in zip(pairs, large, strict=True) if not is_large]
    if few:
        # All small weights in two calls: one by one they would cost more in calls than in arithmetic.
        torch._foreach_mul_([own for own, _ in few], 1 - rate)
        torch._foreach_add_([own for own, _ in few], [their for _, their in few], alpha=rate)
    for own, their in compress(pairs, large):
        # Piece by piece: what was multiplied is still in the processor's cache when it is added to.
        rows = max(1, AT_ONCE * len(own) // own.numel())
        for part, other in zip(torch.split(own, rows), torch.split(their, rows), strict=True):
            part.mul_(1 - rate).add_(other, alpha=rate)
    for own, their in zip(target.buffers(), online.buffers(), strict=True):
        own.copy_(their)
