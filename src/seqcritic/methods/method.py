"""What the trainer asks of a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from seqcritic.data.batch import Batch
from seqcritic.method_settings import MethodSettings
from seqcritic.methods.networks import Networks
from seqcritic.scores.score import Score


@dataclass(frozen=True)
class Outcome:
    """One loss over all trained networks (no gradient crosses between them) and what to log, as scalars."""

    loss: Tensor
    measurements: dict[str, Tensor]


class RewardMethod:
    """What all methods but likelihood are made of; some have no use for the score."""

    def __init__(self, settings: MethodSettings, score: Score, shaping: bool) -> None:
        self.settings = settings
        self.score = score
        self.shaping = shaping


class Method(Protocol):
    """A way to turn a batch into a loss."""

    trains: tuple[str, ...]
    """The names in Networks whose weights the loss moves."""

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the loss of a batch; all randomness comes from the generator.

        `progress`: the share of the phase's updates already made, 0 at the first; schedules depend on it.
        """
        ...
