"""Entropy-regularised actor-critic: the soft values by enumeration, and actor-critic where the temperature is 0."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.methods import losses
from seqcritic.methods.build import build_method
from seqcritic.methods.entropy_actor_critic import EntropyActorCritic
from seqcritic.settings.tree import Settings
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Values
from seqcritic.testing.critics import random_values
from seqcritic.testing.unbiased import expected_gradients, method_estimator
from seqcritic.testing.worlds import (
    World,
    gradients,
    largest_difference,
    make_actor,
    make_world,
)
from test_estimators import Estimator
from test_gradients import SCORE, make_batch, make_networks, make_settings

TEMPERATURE = 0.7


@pytest.fixture
def world() -> World:
    return make_world(make_actor())


def settings_of(temperature: float, **changes: object) -> Settings:
    return make_settings("entropy-actor-critic", entropy_actor_critic={"temperature": temperature}, **changes)


def entropy_sums(world: World) -> Tensor:
    """Σ_{τ≥t} H(p(· | Ŷ_1..τ-1)) along every sequence, [N, T], differentiable."""
    entropies = -(torch.softmax(world.logits, 2) * torch.log_softmax(world.logits, 2)).sum(2)
    return torch.where(world.mask, entropies, 0.0).flip(1).cumsum(1).flip(1)


def exact_soft_values(world: World) -> Tensor:
    """E[Σ_{τ≥t} r_τ + τ Σ_{τ>t} H_τ | Ŷ_1..t-1, a] of every action, [N, T, V], by enumeration."""
    later = torch.nn.functional.pad(entropy_sums(world).detach()[:, 1:], (0, 1))
    return world.exact_values(TEMPERATURE * later)


def test_the_exact_soft_values_are_a_fixed_point_of_the_soft_bellman_backup(world):
    values = exact_soft_values(world)
    probabilities = torch.softmax(world.logits.detach(), 2)
    rewards = losses.soft_rewards(world.rewards, losses.entropies(probabilities.log()), world.mask, TEMPERATURE)
    state_values = losses.expected_values(probabilities, values)
    targets = losses.temporal_difference_targets(rewards, state_values, world.mask)
    assert float((targets - losses.gather_chosen(values, world.tokens))[world.mask].abs().max()) < 1e-10
    assert float((values - world.exact_values()).abs().max()) > 0.1


@pytest.mark.parametrize("temporal_difference", [True, False])
def test_a_critic_with_exact_soft_values_has_no_expected_error(world, temporal_difference):
    """Targets equal the values (TD), or average to them (Monte Carlo): the critic's gradient is 0."""
    networks = Estimator("entropy-actor-critic", table=exact_soft_values).networks(world)
    changes = {"temporal_difference": temporal_difference, "variance_penalty": 0.0}

    def gradient_of_the_critic(temperature: float) -> float:
        method = build_method(settings_of(temperature, **changes), "train", SCORE)
        estimator = method_estimator(method, networks, world)
        (found,) = expected_gradients(estimator, world, network=networks.critic)
        return float(found.abs().max())

    assert gradient_of_the_critic(TEMPERATURE) < 1e-10
    assert gradient_of_the_critic(0.0) > 1e-3


def test_with_exact_soft_values_the_gradient_is_that_of_the_regularised_return(world):
    networks = Estimator("entropy-actor-critic", table=exact_soft_values).networks(world)
    method = EntropyActorCritic(settings_of(TEMPERATURE).method, SCORE, True)
    found = expected_gradients(method_estimator(method, networks, world), world)
    again = make_world(networks.actor)
    entropy = (again.sequence_probabilities * entropy_sums(again)[:, 0]).sum()
    exact = gradients(-(again.expected_return + TEMPERATURE * entropy), networks.actor)
    assert largest_difference(found, exact) < 1e-8
    assert largest_difference(found, gradients(-again.expected_return, networks.actor)) > 1e-2


@pytest.mark.parametrize("phase", ["critic", "train"])
@pytest.mark.parametrize("changes", [{}, {"temporal_difference": False, "likelihood_weight": 0.1, "samples": 2}])
def test_without_temperature_it_is_actor_critic_exactly(phase, changes):
    found = []
    for settings in (make_settings("actor-critic", **changes), settings_of(0.0, **changes)):
        networks = make_networks(settings)
        method = build_method(settings, phase, SCORE)
        outcome = method(networks, make_batch(), torch.Generator().manual_seed(0), 0.5)
        outcome.loss.backward()
        trained = [parameter.grad for name in method.trains for parameter in getattr(networks, name).parameters()]
        found.append([outcome.loss, *outcome.measurements.values(), *trained])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_random_values_give_a_finite_gradient_where_probabilities_vanish(world):
    logits = torch.tensor([[[0.0, -200.0, 3.0]]], requires_grad=True)
    method = EntropyActorCritic(settings_of(TEMPERATURE).method, SCORE, True)
    values = random_values(world)[:1, :1].float()
    mask = torch.tensor([[True]])
    loss = method.actor_loss(Packed.of(logits, mask), Values(Packed.of(values, mask)), mask)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert bool(torch.isfinite(gradient).all())
