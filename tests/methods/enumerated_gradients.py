"""Bias and variance of the diagnosed estimators by enumeration, on the world of fifteen sequences, for any critic.

Shapes: N sequences, T steps, V tokens, P weights of the actor.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from enumeration import NUM_TOKENS, World, gradients
from seqcritic.analysis.estimators import ESTIMATORS, Subject
from seqcritic.contracts.critic import Critic
from seqcritic.methods import losses
from seqcritic.models.baseline import LinearBaseline
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.attention import EncoderMemory
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns, Values


class PrefixCritic(Critic):
    """A critic whose values [N, T, V] are given for every sequence of the world and looked up by the prefix."""

    reads_actor_states = False

    def __init__(self, world: World, table: Tensor) -> None:
        super().__init__()
        self.known = {
            sequence[:step]: table[row, step]
            for row, sequence in enumerate(world.sequences)
            for step in range(len(sequence))
        }

    def encode(self, references: Tensor, mask: Tensor, masks: None = None) -> EncoderMemory:
        return EncoderMemory(references, references, references)

    def masked_values(
        self,
        memory: EncoderMemory,
        predictions: Tensor,
        actor_states: Tensor,
        mask: Tensor,
        columns: Columns | None = None,
    ) -> Values:
        nothing = torch.zeros(NUM_TOKENS, dtype=torch.float64)
        rows = predictions.tolist()
        steps = range(predictions.shape[1])
        values = [torch.stack([self.known.get(tuple(row[:t]), nothing) for t in steps]) for row in rows]
        return Values(Packed.of(torch.stack(values), mask))


def wrong_values(world: World, noise: float = 0.1) -> Tensor:
    """Values [N, T, V] off the exact ones by noise of a standard deviation, which depends on the prefix alone."""
    table = world.exact_values()
    for row, sequence in enumerate(world.sequences):
        for step in range(len(sequence)):
            seed = sum((token + 1) * 7**place for place, token in enumerate(sequence[:step]))
            errors = torch.randn(NUM_TOKENS, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
            table[row, step] += noise * errors
    return table


def make_baseline() -> LinearBaseline:
    """A baseline that is of little use, fixed so that enumeration can use it too."""
    baseline = LinearBaseline(5).double()
    nn.init.normal_(baseline.linear.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    return baseline


def make_subject(actor: RecurrentActor, world: World, table: Tensor) -> Subject:
    """The actor of the world with a critic that has these values [N, T, V], rewarded as the world is."""
    return Subject(actor, PrefixCritic(world, table), EditDistanceScore(normalise=False), True)  # type: ignore[arg-type]


class Exact:
    """Expectation and variance of every estimator by going through all sequences; a draw has so many examples."""

    def __init__(
        self, world: World, actor: nn.Module, table: Tensor, baseline: LinearBaseline, num_examples: int
    ) -> None:
        probabilities = world.sequence_probabilities.detach()
        self.truth = torch.cat([part.flatten() for part in gradients(world.expected_return, actor)])  # [P]
        log_probabilities = torch.log_softmax(world.logits, 2)
        returns = losses.returns_to_go(world.rewards, world.mask)
        state_values = (log_probabilities.exp().detach() * table).sum(2)
        self.draws: dict[str, Tensor] = {}  # [N, P] each
        for name in ESTIMATORS:
            rows = []
            for row in range(len(world.sequences)):
                token_log_probabilities = losses.gather_chosen(log_probabilities, world.tokens)[row]
                full = (log_probabilities.exp() * table).sum(2)[row]
                advantages = {
                    "reinforce": returns - baseline(world.states).detach(),
                    "reinforce-critic": returns - state_values,
                    "corrected": returns - losses.gather_chosen(table, world.tokens),
                    "actor-critic": torch.zeros_like(returns),
                }[name][row]
                objective = token_log_probabilities * advantages + (
                    full if name in ("actor-critic", "corrected") else 0.0
                )
                total = torch.where(world.mask[row], objective, 0.0).sum()
                rows.append(torch.cat([part.flatten() for part in gradients(total, actor)]))
            self.draws[name] = torch.stack(rows)
        self.means = {name: probabilities @ rows for name, rows in self.draws.items()}
        self.square = float(self.truth.square().sum())
        self.variances = {
            name: float(probabilities @ (rows - self.means[name]).square().sum(1)) / num_examples / self.square
            for name, rows in self.draws.items()
        }
        self.bias_squares = {
            name: float((mean - self.truth).square().sum()) / self.square for name, mean in self.means.items()
        }

    def cosine(self, name: str) -> float:
        """Return the cosine of an estimator's mean to the true gradient."""
        return float(torch.cosine_similarity(self.means[name], self.truth, dim=0))
