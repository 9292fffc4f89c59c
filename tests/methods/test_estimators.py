"""Every estimator that claims to be unbiased against the exact gradient of the expected return, in float64.

The expectation of an estimate is taken by enumeration: the method runs on every sequence, or on every pair where it
draws two samples, and its gradients are averaged by their exact probabilities.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from enumeration import (
    NUM_STEPS,
    NUM_TOKENS,
    SIZES,
    World,
    gradients,
    largest_difference,
    make_actor,
    make_batch,
    make_world,
)
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.method import Method
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import BASELINE, CRITIC, Networks
from seqcritic.methods import losses, rollout
from seqcritic.models.baseline import LinearBaseline
from seqcritic.models.gru.attention import EncoderMemory
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.methods import method_section
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns, Values

SCORE = EditDistanceScore(normalise=False)
Table = Callable[[World], Tensor]


class TabularCritic(Critic):
    """A critic whose values are given for every sequence; those of some rows are looked up at a time."""

    reads_actor_states = False

    def __init__(self, table: Tensor, residual_on: str = "none") -> None:
        super().__init__()
        self.table = nn.Parameter(table)
        self.residual_on = residual_on
        self.rows = [0]

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> None:
        return None

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
        return Values(Packed.of(self.table[self.rows, : predictions.shape[1]], mask))


def random_table(world: World) -> Tensor:
    """Values that depend on the sequence only through its prefix, as any critic's do."""
    table = torch.zeros(len(world.sequences), NUM_STEPS, NUM_TOKENS, dtype=torch.float64)
    for row, sequence in enumerate(world.sequences):
        for step in range(len(sequence)):
            seed = sum((token + 1) * 7**place for place, token in enumerate(sequence[:step]))
            generator = torch.Generator().manual_seed(seed)
            table[row, step] = 3 * torch.randn(NUM_TOKENS, dtype=torch.float64, generator=generator)
    return table


@dataclass(frozen=True)
class Estimator:
    """A method, the samples it draws for an example, its own knobs, and the values of its critic."""

    name: str
    samples: int = 1
    knobs: tuple[tuple[str, object], ...] = ()
    table: Table = random_table

    def method(self, shaping: bool = True, likelihood_weight: float = 0.0, reward_dropout: str = "held") -> Method:
        settings = method_section()(
            name=self.name, likelihood_weight=likelihood_weight, reward_dropout=reward_dropout, **dict(self.knobs)
        )
        return registered_methods()[self.name](settings, SCORE, shaping)

    def networks(self, world: World, dropout: float = 0.0) -> Networks:
        """Return what the method needs, each network as wrong as it may be."""
        networks, needs = Networks(make_actor(dropout=dropout)), registered_methods()[self.name].needs
        if CRITIC in needs:
            values = self.table(world)
            networks.critic, networks.target_critic = TabularCritic(values), TabularCritic(values.clone())  # type: ignore[assignment]
        if BASELINE in needs:
            networks.baseline = LinearBaseline(SIZES.hidden).double()
            nn.init.normal_(networks.baseline.linear.weight, std=3.0, generator=torch.Generator().manual_seed(1))
            nn.init.constant_(networks.baseline.linear.bias, -2.0)
        return networks


UNBIASED = (
    Estimator("actor-critic", table=World.exact_values),
    Estimator("actor-critic", knobs=(("correction", 1.0),)),
    Estimator("reinforce-critic"),
    Estimator("reinforce"),
    Estimator("reinforce-multisample", samples=2, knobs=(("reinforce_multisample", {"samples": 2}),)),
    Estimator("self-critical"),
    Estimator("ppo", knobs=(("ppo", {"gae_lambda": 1.0, "steps": 1}),)),
)
every_estimator = pytest.mark.parametrize(
    "estimator", UNBIASED, ids=["-".join([estimator.name, *dict(estimator.knobs)]) for estimator in UNBIASED]
)


@pytest.fixture
def world() -> World:
    return make_world(make_actor())


def expected_gradients(
    method: Method,
    networks: Networks,
    world: World,
    samples: int,
    monkeypatch: pytest.MonkeyPatch,
    of: str = "actor",
) -> list[Tensor]:
    """Run the method on every tuple of sequences and average a network's gradient by the exact probabilities."""
    network = getattr(networks, of)
    total = [torch.zeros_like(parameter) for parameter in network.parameters()]
    probabilities = world.sequence_probabilities.detach()
    for rows in itertools.product(range(len(world.sequences)), repeat=samples):
        monkeypatch.setattr(rollout, "sample", lambda *rest, rows=rows: world.sample_of(rows))
        for critic in (networks.critic, networks.target_critic):
            if critic is not None:
                critic.rows = list(rows)
        outcome = method(networks, make_batch(), torch.Generator(), 0.0)
        for sum_so_far, gradient in zip(total, gradients(outcome.loss, network), strict=True):
            sum_so_far += probabilities[list(rows)].prod() * gradient
    return total


def exact_loss_gradients(networks: Networks) -> list[Tensor]:
    """The gradient of −V for the networks' actor, whose weights are the world's."""
    return gradients(-make_world(networks.actor).expected_return, networks.actor)


@pytest.mark.parametrize("shaping", [True, False])
@every_estimator
def test_the_estimate_is_unbiased(estimator, shaping, monkeypatch):
    world = make_world(make_actor(), shaping)
    networks = estimator.networks(world)
    found = expected_gradients(estimator.method(shaping), networks, world, estimator.samples, monkeypatch)
    assert largest_difference(found, exact_loss_gradients(networks)) < 1e-8


@pytest.mark.parametrize("reward_dropout", ["held", "none"])
@every_estimator
def test_the_estimate_is_unbiased_for_the_policy_that_drops_units(estimator, reward_dropout, monkeypatch):
    # A generator as fresh as the one every call of the method is given: it draws the same masks.
    masks = make_actor(dropout=0.4).draw_masks(1, torch.Generator()) if reward_dropout == "held" else None
    world = make_world(make_actor(dropout=0.4), masks=masks)
    networks = estimator.networks(world, dropout=0.4)
    method = estimator.method(reward_dropout=reward_dropout)
    found = expected_gradients(method, networks, world, estimator.samples, monkeypatch)
    exact = gradients(-make_world(networks.actor, masks=masks).expected_return, networks.actor)
    assert largest_difference(found, exact) < 1e-8
    assert (largest_difference(found, exact_loss_gradients(networks)) > 1e-3) == (reward_dropout == "held")


@every_estimator
def test_the_likelihood_term_is_added_with_its_weight(estimator, world, monkeypatch):
    networks = estimator.networks(world)
    plain = expected_gradients(estimator.method(), networks, world, estimator.samples, monkeypatch)
    method = estimator.method(likelihood_weight=0.25)
    mixed = expected_gradients(method, networks, world, estimator.samples, monkeypatch)
    actor, batch = networks.actor, make_batch()
    logits, _ = actor.score(actor.encode(batch.sources, batch.source_mask), batch.references)
    likelihood = losses.likelihood_loss(torch.log_softmax(logits, 2), batch.references, batch.reference_mask)
    expected = [a + 0.25 * b for a, b in zip(plain, gradients(likelihood, actor), strict=True)]
    assert largest_difference(mixed, expected) < 1e-10


def test_actor_critic_with_wrong_values_is_biased(world, monkeypatch):
    wrong = Estimator("actor-critic")
    networks = wrong.networks(world)
    found = expected_gradients(wrong.method(), networks, world, 1, monkeypatch)
    assert largest_difference(found, exact_loss_gradients(networks)) > 1e-3


def test_the_exact_values_are_a_fixed_point_of_the_bellman_backup(world):
    values = world.exact_values()
    probabilities = torch.softmax(world.logits.detach(), 2)
    state_values = losses.expected_values(probabilities, values)
    targets = losses.temporal_difference_targets(world.rewards, state_values, world.mask)
    backed_up = losses.gather_chosen(values, world.tokens)
    # A target averages over what follows the token; q is exact for every prefix, so it must agree token by token.
    assert float((targets - backed_up)[world.mask].abs().max()) < 1e-10


def test_monte_carlo_targets_average_to_the_exact_values(world):
    probabilities = world.sequence_probabilities.detach()
    returns = losses.returns_to_go(world.rewards, world.mask)
    first_tokens = world.tokens[:, 0]
    exact = world.exact_values()[0, 0]
    for action in range(NUM_TOKENS):
        rows = first_tokens == action
        mean = (probabilities[rows] * returns[rows, 0]).sum() / probabilities[rows].sum()
        assert float(mean) == pytest.approx(float(exact[action]), abs=1e-10)


def test_shaped_rewards_sum_to_the_unshaped_return():
    actor = make_actor()
    shaped, unshaped = make_world(actor, shaping=True), make_world(actor, shaping=False)
    assert torch.equal(shaped.rewards.sum(1), unshaped.rewards.sum(1))
    assert not torch.equal(shaped.rewards, unshaped.rewards)
    assert float((unshaped.rewards != 0).sum(1).max()) <= 1
