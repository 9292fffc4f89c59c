"""Random numbers for sampling: one for every row and step, and the token that each of them chooses.

The numbers of one call come from a generator of their own, seeded by a single draw: however long the samples grow, the
caller's generator moves by one step. They are drawn on the CPU step by step, so that the first steps are the same for
any number of steps, and the same on every device.

Shapes: B rows, T steps, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

BITS = 32
SCALE = 1 << 30  # of probabilities as whole numbers: their sum, which rounding may raise a little, fits 32 bits


def draw_numbers(generator: torch.Generator, num_steps: int, num_rows: int) -> Tensor:
    """Return whole numbers [T, B], uniform in [0, 2³²), on the CPU."""
    seed = int(torch.randint(1 << 62, (), generator=generator, device="cpu"))
    own = torch.Generator().manual_seed(seed)
    return torch.randint(1 << BITS, (num_steps, num_rows), generator=own, device="cpu")


def draw_uniform(generator: torch.Generator, num_steps: int, num_rows: int) -> Tensor:
    """Return float64 numbers [T, B], uniform in [0, 1), on the CPU."""
    return draw_numbers(generator, num_steps, num_rows).double() / (1 << BITS)


def branch(generator: torch.Generator) -> torch.Generator:
    """Return a generator of the same kind, seeded by one draw: however much it draws, the other moves by one step."""
    own = type(generator)()
    for name, value in getattr(generator, "__dict__", {}).items():
        setattr(own, name, value)
    return own.manual_seed(int(torch.randint(1 << 62, (), generator=generator, device="cpu")))


def choose(probabilities: Tensor, numbers: Tensor) -> Tensor:
    """Return the token [B] of each row of probabilities [B, V] that its number [B] chooses, by inverting the CDF.

    In whole numbers, w_a = ⌊2³⁰ p(a)⌋: the first token whose running sum exceeds ⌊Σ_a w_a · number / 2³²⌋. That is
    less than the whole sum, and equal to no sum that it exceeds, so there is such a token and its weight is not 0. Sums
    of whole numbers are exact: no token of probability 0 is drawn, in any order of summation.
    """
    sums = (probabilities * SCALE).to(torch.int32).cumsum(dim=1, dtype=torch.int32)
    thresholds = sums[:, -1:].to(torch.int64) * numbers[:, None] >> BITS
    return torch.searchsorted(sums, thresholds.to(torch.int32), right=True)[:, 0]
