"""What the trainer asks of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from seqcritic.contracts.score import Score
from seqcritic.data.batch import Batch
from seqcritic.method_settings import MethodSettings
from seqcritic.methods.networks import Networks


@dataclass(frozen=True)
class Outcome:
    """One loss over all trained networks (no gradient crosses between them) and what to log, as scalars.

    `observations`: means over the batch that the method's own state is to learn from, see `Method.observe`.
    """

    loss: Tensor
    measurements: dict[str, Tensor]
    observations: dict[str, Tensor] = field(default_factory=dict)


class Method(ABC):
    """A way to turn a batch into a loss. Few have a state of their own; it begins anew with each phase."""

    trains: tuple[str, ...]
    """The names in Networks whose weights the loss moves."""

    @abstractmethod
    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the loss of a batch; all randomness comes from the generator.

        `progress`: the share of the phase's updates already made, 0 at the first; schedules depend on it.
        """

    def observe(self, observations: Mapping[str, Tensor]) -> None:
        """Learn from an outcome's observations, after they have been averaged over all processes."""
        assert not observations, "of a method that has no state"

    def tensors(self) -> dict[str, Tensor]:
        """Return the state that decides the next outcome, for the checkpoint; nothing where there is none."""
        return {}

    def load_tensors(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore what `tensors` returned."""
        assert not tensors, "of a method that has no state"


class RewardMethod(Method):
    """What all methods but likelihood are made of; some have no use for the score."""

    def __init__(self, settings: MethodSettings, score: Score, shaping: bool) -> None:
        self.settings = settings
        self.score = score
        self.shaping = shaping
