"""Critics whose values are known for every prefix of a world: exact ones, wrong ones, random ones.

Shapes: N sequences of the world, B predictions, T steps, V tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqcritic.contracts.critic import Critic
from seqcritic.contracts.parts import ResidualOn
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns, Values
from seqcritic.testing.worlds import World


class TabularCritic(Critic):
    """A critic that looks its values up by the prefix, in a table [N, T, V] of a world.

    The table is its only weight; sequences with a common prefix use the first of their rows.
    """

    reads_actor_states = False

    def __init__(self, world: World, table: Tensor, residual_on: ResidualOn = "none") -> None:
        super().__init__()
        # A copy, as training the critic would change the caller's table.
        self.table = nn.Parameter(table.clone())
        self.residual_on = residual_on
        self.positions: dict[tuple[int, ...], tuple[int, int]] = {}
        for row, sequence in enumerate(world.sequences):
            for step in range(len(sequence)):
                # The first row that has the prefix: of a well-made table all of its rows say the same.
                self.positions.setdefault(sequence[:step], (row, step))

    def encode(self, references: Tensor, mask: Tensor, masks: None = None) -> Tensor:
        """Nothing is read: there is one reference, and the table is of it."""
        return references

    def masked_values(
        self, memory: Tensor, predictions: Tensor, actor_states: Tensor, mask: Tensor, columns: Columns | None = None
    ) -> Values:
        """Values [N, V] of all tokens where the mask is True; what follows the end is of no sequence, and masked."""
        found = [
            [self.positions.get(tuple(row[:step]), (0, 0)) for step in range(len(row))] for row in predictions.tolist()
        ]
        rows, steps = torch.tensor(found).unbind(2)  # [B, T] each
        return Values(Packed.of(self.table[rows, steps], mask))


def random_values(world: World, scale: float = 3.0) -> Tensor:
    """Values [N, T, V] that know nothing; like any critic's they depend on a sequence only through its prefix."""
    table = torch.zeros_like(world.logits, requires_grad=False)
    for row, sequence in enumerate(world.sequences):
        for step in range(len(sequence)):
            # A number of the prefix alone, another for each of a small world: + 1 tells (0,) from ().
            seed = sum((token + 1) * 7**position for position, token in enumerate(sequence[:step]))
            generator = torch.Generator().manual_seed(seed)
            table[row, step] = scale * torch.randn(table.shape[2], dtype=torch.float64, generator=generator)
    return table


def wrong_values(world: World, noise: float = 0.1) -> Tensor:
    """Values [N, T, V] off the exact ones by noise of a standard deviation, which depends on the prefix alone."""
    return world.exact_values() + random_values(world, noise)
