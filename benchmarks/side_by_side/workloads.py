"""The workloads every side is timed on, and their synthetic pairs: the same numbers for all, made from a seed.

A pair is a target of content tokens 0, 1, … and its source, the target with some tokens replaced, so that there is
something to learn. Each side adds its own special tokens; all sides have the same size of vocabulary with them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

NUM_SPECIAL = 6  # room in every vocabulary for the special tokens of whichever side has most
NOISE = 0.3

Pair = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Workload:
    """Sizes of a model and of its batches; lengths are without end tokens."""

    name: str
    vocabulary: int
    size: int  # of embeddings, of the state in each direction and of the attention
    shortest: int
    longest: int
    batch: int
    output_width: int | None = None  # ours, the peers' being as wide as the state; None: no layer

    @property
    def num_content(self) -> int:
        """How many different tokens the text has."""
        return self.vocabulary - NUM_SPECIAL

    def batches(self, count: int, seed: int = 1) -> list[list[Pair]]:
        """Return so many batches of (source, target); the lengths of a batch are spread over the whole range."""
        generator = random.Random(f"{self.name}-{seed}")
        return [[self._pair(generator) for _ in range(self.batch)] for _ in range(count)]

    def _pair(self, generator: random.Random) -> Pair:
        length = generator.randint(self.shortest, self.longest)
        target = [generator.randrange(self.num_content) for _ in range(length)]
        source = [generator.randrange(self.num_content) if generator.random() < NOISE else token for token in target]
        return source, target

    def describe(self) -> str:
        """Return the sizes in words."""
        lengths = str(self.longest) if self.shortest == self.longest else f"{self.shortest} to {self.longest}"
        return f"vocabulary {self.vocabulary:,}, sizes {self.size}, length {lengths}, batch {self.batch}"


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("a10", vocabulary=40, size=100, shortest=10, longest=10, batch=100),
        Workload("a30", vocabulary=40, size=100, shortest=30, longest=30, batch=100),
        Workload("b", vocabulary=8_000, size=256, shortest=15, longest=25, batch=64, output_width=256),
        Workload("b-wide", vocabulary=8_000, size=256, shortest=15, longest=25, batch=64),
    )
}
