"""Every outcome of everything a method draws, each with its exact probability, whatever the method does with it.

Tokens are chosen by `choose` and coins are thrown by `draw_uniform` (draws.py). Both have a stand-in here that
takes one branch at a time: the method runs as it is, once for each leaf of the tree of its draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from seqcritic.contracts.method import Outcome
from seqcritic.testing.worlds import gradients


@dataclass
class Branches:
    """The outcomes that the present run takes, and how probable they are together."""

    path: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    probability: float = 1.0
    depth: int = 0

    def take(self, chances: list[float]) -> int:
        """Return the outcome, in this run, of a draw with these probabilities."""
        # Beyond the noted path: the first outcome is taken, and how many there are is noted.
        if self.depth == len(self.path):
            self.path.append(0)
            self.sizes.append(len(chances))
        outcome = self.path[self.depth]
        self.depth += 1
        # Of the whole path: what is drawn later may depend on what was drawn before.
        self.probability *= chances[outcome]
        return outcome

    def choose(self, probabilities: Tensor, numbers: Tensor) -> Tensor:
        """Stand in for `draws.choose`: a token [B] of each row of probabilities [B, V]."""
        # The random numbers are not read: the outcome is the one that is due.
        return torch.tensor([self.take(row) for row in probabilities.tolist()])

    def coins(self, probability_below: float) -> Callable[..., Tensor]:
        """Return a stand-in for `draws.draw_uniform`: numbers [T, B], below the probability as often as it says."""

        def draw(generator: torch.Generator, num_steps: int, num_rows: int) -> Tensor:
            numbers = [
                # The two ends of what such a number can mean: below the threshold, or not.
                (0.0, probability_below)[self.take([probability_below, 1 - probability_below])]
                for _ in range(num_steps * num_rows)
            ]
            return torch.tensor(numbers, dtype=torch.float64).view(num_steps, num_rows)

        return draw

    def advance(self) -> bool:
        """Go to the next leaf; return whether there is one."""
        # Depth first: what is exhausted at the end of the path is dropped, and the draw before it goes on.
        while self.path and self.path[-1] == self.sizes[-1] - 1:
            self.path.pop()
            self.sizes.pop()
        if self.path:
            self.path[-1] += 1
        # Every run starts at the root and takes the noted outcomes again.
        self.depth, self.probability = 0, 1.0
        return bool(self.path)


def outcomes(branches: Branches, run: Callable[[], Outcome]) -> Iterator[tuple[float, Outcome]]:
    """Yield the outcome at every leaf with its probability; the probabilities must sum to 1."""
    total, going = 0.0, True
    while going:
        outcome = run()
        total += branches.probability
        # An impossible leaf adds nothing, but its loss may be infinite, and 0 · ∞ is not 0.
        if branches.probability > 0:
            yield branches.probability, outcome
        going = branches.advance()
    # Else a run drew otherwise than the runs before it noted, and the tree has no such leaves.
    assert abs(total - 1) < 1e-12


def expected_gradients(branches: Branches, run: Callable[[], Outcome], network: nn.Module) -> list[Tensor]:
    """Return the expectation of the gradient of the loss, over all that is drawn."""
    total = [torch.zeros_like(parameter) for parameter in network.parameters()]
    for probability, outcome in outcomes(branches, run):
        for sum_so_far, gradient in zip(total, gradients(outcome.loss, network), strict=True):
            sum_so_far += probability * gradient
    return total
