"""Random numbers for sampling: one for every row and step, and the token that each of them chooses.

The numbers of one call come from a generator of their own, seeded by a single draw: however long the samples grow, the
caller's generator moves by one step. They are drawn on the CPU step by step, so that the first steps are the same for
any number of steps, and the same on every device.

Where several processes share an update's examples, each draws the numbers of all of them and keeps its own: the samples
of an example do not depend on the number of processes.

Shapes: B rows, T steps, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BITS = 32
SCALE = 1 << 30  # of probabilities as whole numbers: their sum, which rounding may raise a little, fits 32 bits


@dataclass(frozen=True)
class Shard:
    """Which of an update's examples one process holds: `first` up to, without, `last` of `total`."""

    first: int
    last: int
    total: int

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def fraction(self) -> float:
        """What part of the whole it is."""
        return len(self) / self.total


class ShardedGenerator(torch.Generator):
    """The generator of a process that holds a shard of an update's examples; all processes seed it alike."""

    shard: Shard | None = None


def draw_numbers(generator: torch.Generator, num_steps: int, num_rows: int) -> Tensor:
    """Return whole numbers [T, B], uniform in [0, 2³²), on the CPU.

    The rows are the examples of the update, or of the generator's shard of it, each as many times in a row.
    """
    seed = int(torch.randint(1 << 62, (), generator=generator, device="cpu"))
    own = torch.Generator().manual_seed(seed)
    shard = generator.shard if isinstance(generator, ShardedGenerator) else None
    if shard is None:
        # Step after step in memory, [T, B]: a longer draw begins with the numbers of a shorter one.
        return torch.randint(1 << BITS, (num_steps, num_rows), generator=own, device="cpu")
    samples, rest = divmod(num_rows, len(shard))
    assert rest == 0, "rows are whole examples"
    numbers = torch.randint(1 << BITS, (num_steps, shard.total * samples), generator=own, device="cpu")
    return numbers[:, shard.first * samples : shard.last * samples]


def draw_uniform(generator: torch.Generator, num_steps: int, num_rows: int) -> Tensor:
    """Return float64 numbers [T, B], uniform in [0, 1), on the CPU."""
    return draw_numbers(generator, num_steps, num_rows).double() / (1 << BITS)  # exact: 32 of float64's 53 bits


def fork(generator: torch.Generator) -> ShardedGenerator:
    """Return a generator of the same shard, seeded by one draw: however much it draws, the other moves by one step."""
    own = ShardedGenerator()
    own.manual_seed(int(torch.randint(1 << 62, (), generator=generator, device="cpu")))
    own.shard = generator.shard if isinstance(generator, ShardedGenerator) else None
    return own


def choose(probabilities: Tensor, numbers: Tensor) -> Tensor:
    """Return the token [B] of each row of probabilities [B, V] that its number [B] chooses, by inverting the CDF.

    In whole numbers, w_a = ⌊2³⁰ p(a)⌋: the first token whose running sum exceeds ⌊Σ_a w_a · number / 2³²⌋. That is
    less than the whole sum, and equal to no sum that it exceeds, so there is such a token and its weight is not 0. Sums
    of whole numbers are exact: no token of probability 0 is drawn, in any order of summation.
    """
    sums = (probabilities * SCALE).to(torch.int32).cumsum(dim=1, dtype=torch.int32)  # [B, V]
    # In int64: about 2³⁰ times a number below 2³² stays below 2⁶³.
    thresholds = sums[:, -1:].to(torch.int64) * numbers[:, None] >> BITS
    # right: the first sum above the threshold, not one that equals it.
    return torch.searchsorted(sums, thresholds.to(torch.int32), right=True)[:, 0]
