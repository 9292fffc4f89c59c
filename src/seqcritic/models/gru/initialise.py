"""Initial weights: the paper draws them from U[-range, range] with zero biases."""

from __future__ import annotations

import math

import torch
from torch import nn


def initialise(module: nn.Module, initial_range: float | None, generator: torch.Generator) -> None:
    """Draw all weights from the generator; without a range, from U[-1/√n, 1/√n] with n the size of the input.

    The second is what PyTorch does for recurrent layers; drawing it here keeps the global generator out of it.
    """
    with torch.no_grad():
        # In the order in which modules were added, each once: what is added last changes no draw of the others.
        for name, parameter in module.named_parameters():
            if initial_range is not None and "bias" in name:
                parameter.zero_()
                continue
            bound = initial_range if initial_range is not None else 1 / math.sqrt(parameter.shape[-1])
            parameter.uniform_(-bound, bound, generator=generator)
