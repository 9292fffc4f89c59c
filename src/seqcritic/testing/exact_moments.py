"""Bias and variance of the estimators that `diagnose` measures, by enumeration of a world, for any critic.

Shapes: N sequences, T steps, V tokens, P weights of the actor.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqcritic.analysis.estimators import Subject
from seqcritic.analysis.state_values import StateValues
from seqcritic.contracts.batch import Batch
from seqcritic.methods import losses
from seqcritic.models.baseline import LinearBaseline
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.testing.critics import TabularCritic
from seqcritic.testing.worlds import SIZES, World, gradients


class TabularStateValues(StateValues):
    """V(prefix) from a table [N, T] of a world: entry t is of the state before token t."""

    def __init__(self, world: World, table: Tensor) -> None:
        self.known = {
            sequence[:step]: float(table[row, step])
            for row, sequence in enumerate(world.sequences)
            for step in range(len(sequence))
        }

    def values(self, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
        """Values [B, T]; nothing is known after the end."""
        rows = [[self.known.get(tuple(row[:step]), 0.0) for step in range(len(row))] for row in tokens.tolist()]
        return torch.tensor(rows, dtype=torch.float64)


def make_baseline(state_size: int = SIZES.hidden) -> LinearBaseline:
    """A baseline that is of little use, fixed so that enumeration can use it too."""
    # A new baseline is all zeros: nothing that is done with it would show.
    baseline = LinearBaseline(state_size).double()
    nn.init.normal_(baseline.linear.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    return baseline


def make_subject(world: World, table: Tensor) -> Subject:
    """The actor of a world, rewarded as the world is by default, with a critic of these values.

    [N, T, V] are those of a critic of tokens, [N, T] those of a value function.
    """
    known = TabularCritic(world, table) if table.dim() == 3 else TabularStateValues(world, table)
    return Subject(world.actor, known, EditDistanceScore(normalise=False), True)


class ExactMoments:
    """Expectation and variance of every estimator, by going through all sequences; a draw has `num_examples`.

    `table`: the values of the critic as in `make_subject`. Figures are in units of the true gradient's length.
    """

    def __init__(
        self, world: World, table: Tensor, baseline: LinearBaseline, num_examples: int, gae_lambda: float = 0.95
    ) -> None:
        probabilities = world.sequence_probabilities.detach()
        self.truth = torch.cat([part.flatten() for part in world.exact_gradients()])  # [P]
        objectives = _objectives(world, table, baseline, gae_lambda)
        self.draws = {name: _gradients_of_rows(world, objective) for name, objective in objectives.items()}  # [N, P]
        self.means = {name: probabilities @ rows for name, rows in self.draws.items()}  # [P]
        self.square = float(self.truth.square().sum())
        self.variances = {
            # The trace of the covariance alone, of a mean over independent examples.
            name: float(probabilities @ (rows - self.means[name]).square().sum(1)) / num_examples / self.square
            for name, rows in self.draws.items()
        }
        self.bias_squares = {
            name: float((mean - self.truth).square().sum()) / self.square for name, mean in self.means.items()
        }

    def cosine(self, name: str) -> float:
        """Return the cosine of an estimator's mean to the true gradient."""
        return float(torch.cosine_similarity(self.means[name], self.truth, dim=0))


def _objectives(world: World, table: Tensor, baseline: LinearBaseline, gae_lambda: float) -> dict[str, Tensor]:
    """Return what each estimator ascends at every step of every sequence, [N, T]."""
    probabilities = torch.softmax(world.logits, 2)
    token_log_probabilities = losses.gather_chosen(torch.log_softmax(world.logits, 2), world.tokens)
    returns = losses.returns_to_go(world.rewards, world.mask)
    # Baselines are constants: their gradient is no part of an estimate.
    linear = token_log_probabilities * (returns - baseline(world.states).detach())
    if table.dim() == 2:
        advantages = losses.generalised_advantages(world.rewards, table, world.mask, gae_lambda)
        return {
            "reinforce": linear,
            "reinforce-critic": token_log_probabilities * (returns - table),
            "gae": token_log_probabilities * advantages,
        }
    followed = (probabilities * table).sum(2)  # [N, T]
    return {
        "reinforce": linear,
        "reinforce-critic": token_log_probabilities * (returns - followed.detach()),
        "actor-critic": followed,
        "corrected": followed + token_log_probabilities * (returns - losses.gather_chosen(table, world.tokens)),
    }


def _gradients_of_rows(world: World, objective: Tensor) -> Tensor:
    """Return the gradient [N, P] of the sum over the steps of each sequence."""
    sums = torch.where(world.mask, objective, 0.0).sum(1)
    # One sequence at a time: a variance needs each gradient, not their sum.
    return torch.stack([torch.cat([part.flatten() for part in gradients(one, world.actor)]) for one in sums])
