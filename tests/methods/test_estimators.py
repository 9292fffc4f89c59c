"""Every estimator that claims to be unbiased against the exact gradient of the expected return, in float64.

The expectation of an estimate is taken by enumeration: the method runs on every sequence, or on every pair where it
draws two samples, and its gradients are averaged by their exact probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from seqcritic.contracts.method import Method
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import BASELINE, CRITIC, Networks
from seqcritic.methods import losses
from seqcritic.models.baseline import LinearBaseline
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.methods import method_section
from seqcritic.testing.critics import TabularCritic, random_values
from seqcritic.testing.unbiased import assert_unbiased, expected_gradients, method_estimator
from seqcritic.testing.worlds import (
    NUM_TOKENS,
    SIZES,
    World,
    gradients,
    held_masks,
    largest_difference,
    make_actor,
    make_batch,
    make_world,
)

SCORE = EditDistanceScore(normalise=False)
Table = Callable[[World], Tensor]


@dataclass(frozen=True)
class Estimator:
    """A method, the samples it draws for an example, its own knobs, and the values of its critic."""

    name: str
    samples: int = 1
    knobs: tuple[tuple[str, object], ...] = ()
    table: Table = random_values

    def method(self, shaping: bool = True, likelihood_weight: float = 0.0, reward_dropout: str = "held") -> Method:
        settings = method_section()(
            name=self.name, likelihood_weight=likelihood_weight, reward_dropout=reward_dropout, **dict(self.knobs)
        )
        return registered_methods()[self.name](settings, SCORE, shaping)

    def networks(self, world: World) -> Networks:
        """Return what the method needs beside the world's actor, each network as wrong as it may be."""
        networks, needs = Networks(world.actor), registered_methods()[self.name].needs
        if CRITIC in needs:
            values = self.table(world)
            networks.critic, networks.target_critic = TabularCritic(world, values), TabularCritic(world, values)
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


@pytest.mark.parametrize("shaping", [True, False])
@every_estimator
def test_the_estimate_is_unbiased(estimator, shaping):
    world = make_world(shaping=shaping)
    found = method_estimator(estimator.method(shaping), estimator.networks(world), world)
    assert_unbiased(found, world, estimator.samples)


@pytest.mark.parametrize("reward_dropout", ["held", "none"])
@every_estimator
def test_the_estimate_is_unbiased_for_the_policy_that_drops_units(estimator, reward_dropout):
    # A generator as fresh as the one every call of the method is given: it draws the same masks.
    actor = make_actor(dropout=0.4)
    world = make_world(actor, masks=held_masks(actor) if reward_dropout == "held" else None)
    found = method_estimator(estimator.method(reward_dropout=reward_dropout), estimator.networks(world), world)
    assert_unbiased(found, world, estimator.samples)
    off = largest_difference(world.exact_gradients(), make_world(actor).exact_gradients())
    assert (off > 1e-3) == (reward_dropout == "held")


@every_estimator
def test_the_likelihood_term_is_added_with_its_weight(estimator, world):
    networks = estimator.networks(world)
    plain, mixed = (
        expected_gradients(
            method_estimator(estimator.method(likelihood_weight=weight), networks, world), world, estimator.samples
        )
        for weight in (0.0, 0.25)
    )
    actor, batch = networks.actor, make_batch()
    logits, _ = actor.score(actor.encode(batch.sources, batch.source_mask), batch.references)
    likelihood = losses.likelihood_loss(torch.log_softmax(logits, 2), batch.references, batch.reference_mask)
    expected = [a + 0.25 * b for a, b in zip(plain, gradients(likelihood, actor), strict=True)]
    assert largest_difference(mixed, expected) < 1e-10


def test_actor_critic_with_wrong_values_is_biased(world):
    wrong = Estimator("actor-critic")
    with pytest.raises(AssertionError, match=r"biased: by \d.* of the length of the true gradient, cosine"):
        assert_unbiased(method_estimator(wrong.method(), wrong.networks(world), world), world)


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
