"""Every estimator against the exact gradient of the expected return, by enumeration, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from enumeration import (
    NUM_TOKENS,
    World,
    critic_networks,
    expected_gradients,
    gradients,
    largest_difference,
    make_actor,
    make_batch,
    make_world,
    random_table,
)
from seqcritic.method_settings import MethodSettings
from seqcritic.methods import losses
from seqcritic.methods.actor_critic import ActorCritic
from seqcritic.methods.networks import Networks
from seqcritic.methods.reinforce import Reinforce, ReinforceCritic
from seqcritic.models.baseline import LinearBaseline
from seqcritic.scores.edit_distance import EditDistanceScore


@pytest.fixture
def world() -> World:
    return make_world(make_actor())


def exact_loss_gradients(world: World, networks: Networks) -> list[Tensor]:
    """The gradient of −V for the networks' actor, whose weights are the world's."""
    return gradients(-make_world(networks.actor).expected_return, networks.actor)


SETTINGS = MethodSettings(name="actor-critic")
SCORE = EditDistanceScore(normalise=False)


def test_actor_critic_with_exact_values_is_the_gradient_of_the_expected_return(world, monkeypatch):
    networks = critic_networks(World.exact_values, world)
    found = expected_gradients(ActorCritic(SETTINGS, SCORE, True), networks, world, monkeypatch)
    assert largest_difference(found, exact_loss_gradients(world, networks)) < 1e-8


def test_actor_critic_with_wrong_values_is_biased(world, monkeypatch):
    networks = critic_networks(random_table, world)
    found = expected_gradients(ActorCritic(SETTINGS, SCORE, True), networks, world, monkeypatch)
    assert largest_difference(found, exact_loss_gradients(world, networks)) > 1e-3


@pytest.mark.parametrize("shaping", [True, False])
def test_reinforce_critic_is_unbiased_with_any_critic(world, monkeypatch, shaping):
    networks = critic_networks(random_table, world)
    found = expected_gradients(ReinforceCritic(SETTINGS, SCORE, shaping), networks, world, monkeypatch)
    assert largest_difference(found, exact_loss_gradients(world, networks)) < 1e-8


@pytest.mark.parametrize("shaping", [True, False])
def test_reinforce_is_unbiased_with_any_linear_baseline(world, monkeypatch, shaping):
    networks = Networks(make_actor(), baseline=LinearBaseline(5).double())
    nn.init.normal_(networks.baseline.linear.weight, std=3.0, generator=torch.Generator().manual_seed(1))
    nn.init.constant_(networks.baseline.linear.bias, -2.0)
    found = expected_gradients(Reinforce(SETTINGS, SCORE, shaping), networks, world, monkeypatch)
    assert largest_difference(found, exact_loss_gradients(world, networks)) < 1e-8


@pytest.mark.parametrize("method", [ActorCritic, ReinforceCritic, Reinforce])
def test_the_likelihood_term_is_added_with_its_weight(world, monkeypatch, method):
    def networks() -> Networks:
        made = critic_networks(random_table, world)
        made.baseline = LinearBaseline(5).double()
        return made

    plain = expected_gradients(method(SETTINGS, SCORE, True), networks(), world, monkeypatch)
    mixed_settings = MethodSettings(likelihood_weight=0.25)
    mixed_networks = networks()
    mixed = expected_gradients(method(mixed_settings, SCORE, True), mixed_networks, world, monkeypatch)
    actor, batch = mixed_networks.actor, make_batch()
    logits, _ = actor.score(actor.encode(batch.sources, batch.source_mask), batch.references)
    likelihood = losses.likelihood_loss(torch.log_softmax(logits, 2), batch.references, batch.reference_mask)
    expected = [a + 0.25 * b for a, b in zip(plain, gradients(likelihood, actor), strict=True)]
    assert largest_difference(mixed, expected) < 1e-10


def test_the_exact_values_are_a_fixed_point_of_the_bellman_backup(world):
    values = world.exact_values()
    probabilities = torch.softmax(world.logits.detach(), 2)
    state_values = losses.expected_values(probabilities, values)
    targets = losses.temporal_difference_targets(world.rewards, state_values, world.mask)
    backed_up = losses.taken(values, world.tokens)
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
