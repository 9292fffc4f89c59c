"""Dropout with a generator of its own, so that a resumed run drops the same units."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each number with probability `rate` and scale the rest, only while a graph is recorded.

    Sampling, targets and evaluation run without a graph and are therefore never disturbed. The generator is given by
    whoever trains the network; at rate 0 (the paper's) nothing is drawn.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    @property
    def active(self) -> bool:
        """Whether anything would be dropped now."""
        return self.rate > 0 and torch.is_grad_enabled()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inputs with some numbers dropped."""
        if not self.active:
            return inputs
        assert self.generator is not None, "whoever trains a network with dropout gives it a generator"
        kept = torch.rand(inputs.shape, generator=self.generator, device=inputs.device) >= self.rate
        return inputs * kept / (1 - self.rate)
