"""The method's contract: how a batch becomes a loss, and what the rest of the program must know of it.

A method is one class in one file, with its name, its settings and its traits as attributes, and registers there:

    @register_method
    class Mixer(RewardMethod):
        name = "mixer"
        Settings = MixerSettings
        traits = Traits(cost=1.5, mixed_cost=2.1)
        needs = (BASELINE,)
        trains = ("actor", "baseline")

The name is what `method.name` in a recipe says; the settings are its section, here `method.mixer`. What it does is
`__call__`, one loss of a batch; or `updates`, for several optimiser steps from one batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks, NetworkSpec
from seqcritic.settings.base import Section

Aliases: TypeAlias = Mapping[str, Mapping[str, object]]


class Traits(NamedTuple):
    """What the rest of the program must know of a method.

    Costs are typical ones of an update, alone and with the likelihood mixed in, in likelihood updates: `train` counts
    its compute by them where `compare.costs` gives none; `compare` measures instead. `scores`: the names of the scores
    that it can learn from; none: any score. `follows_values`: whether the actor follows the critic's values of tokens,
    so that a critic of states will not do.
    """

    cost: float = 1.0
    mixed_cost: float = 1.0
    takes_correction: bool = False
    scores: tuple[str, ...] = ()
    follows_values: bool = False


@dataclass(frozen=True)
class Outcome:
    """One loss over all trained networks (no gradient crosses between them) and what to log, as scalars.

    `observations`: means over the batch that the method's own state is to learn from, see `Method.observe`.
    """

    loss: Tensor
    measurements: dict[str, Tensor]
    observations: dict[str, Tensor] = field(default_factory=dict)


class Method(ABC):
    """A way to turn a batch into one loss or several. Few have a state of their own; it begins anew with each phase."""

    name: ClassVar[str]
    """What `method.name` says."""
    aliases: ClassVar[Aliases] = {}
    """Names that people search for, which `method.name` takes too, each with what it means in the method's section."""
    Settings: ClassVar[type[Section] | None] = None
    """The class of its section of the settings, None where it has none."""
    traits: ClassVar[Traits] = Traits()
    needs: ClassVar[tuple[NetworkSpec, ...]] = ()
    """The networks beside the actor; a copy stands after what it is a copy of."""
    trains: tuple[str, ...]
    """The names in Networks whose weights the loss moves."""

    @abstractmethod
    def __init__(self, settings: Section, score: object, shaping: bool) -> None:
        """Take the settings of `method`, the score trained for and whether every token is rewarded.

        A method that learns from no score needs none of them.
        """

    @classmethod
    def temperature(cls, own: Section) -> float:
        """Return τ, the weight of the policy's entropy (in nats) in the method's returns, from its own section."""
        return 0.0

    def updates(
        self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float
    ) -> Iterator[Outcome]:
        """Yield the losses of a batch, one optimiser step each; what follows a `yield` sees the weights after its step.

        One step by `__call__`, unless a method says otherwise. How many steps there are must not depend on the batch:
        processes that train together see different shards of it, and take each step together. Checkpoints fall between
        batches, so nothing has to be remembered from one step to the next but here.
        """
        yield self(networks, batch, generator, progress)

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the loss of a batch; all randomness comes from the generator.

        `progress`: the fraction of the phase's updates already made, 0 at the first; schedules depend on it.
        """
        raise NotImplementedError(f"{type(self).__qualname__} makes its losses in `updates`")

    def observe(self, observations: Mapping[str, Tensor]) -> None:
        """Learn from an outcome's observations, after they have been averaged over all processes."""
        assert not observations, "of a method that has no state"

    def tensors(self) -> dict[str, Tensor]:
        """Return the state that decides the next outcome, for the checkpoint; nothing where there is none."""
        return {}

    def load_tensors(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore what `tensors` returned."""
        assert not tensors, "of a method that has no state"
