"""Where gradients must not go: past the end token, into the actor through critic, targets or states."""

from __future__ import annotations

import copy

import pytest
import torch

from method_worlds import NUM_TOKENS, SCORE, make_batch, make_networks, make_settings
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import CRITIC, polyak_update
from seqcritic.data.vocabulary import END
from seqcritic.methods import losses
from seqcritic.methods.build import build_method


@pytest.mark.parametrize("loss_of", ["actor_critic", "reinforce", "critic", "likelihood"])
def test_nothing_after_the_end_token_has_gradient(loss_of):
    generator = torch.Generator().manual_seed(0)
    tokens = torch.tensor([[2, END, 0, 0], [1, 3, 2, END]])
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    outputs = torch.randn(2, 4, NUM_TOKENS, dtype=torch.float64, generator=generator, requires_grad=True)
    numbers = torch.randn(2, 4, dtype=torch.float64, generator=generator)
    log_probabilities = torch.log_softmax(outputs, 2)
    loss = {
        "actor_critic": lambda: losses.actor_critic_loss(log_probabilities.exp(), outputs.detach() ** 2, mask),
        "reinforce": lambda: losses.reinforce_loss(
            losses.gather_chosen(log_probabilities, tokens), numbers, numbers.flip(0), mask
        ),
        "critic": lambda: losses.critic_loss(outputs, tokens, numbers, mask, 0.1),
        "likelihood": lambda: losses.likelihood_loss(log_probabilities, tokens, mask),
    }[loss_of]()
    (gradient,) = torch.autograd.grad(loss, outputs)
    assert torch.equal(gradient[~mask], torch.zeros_like(gradient[~mask]))
    assert bool((gradient[mask].abs().sum(1) > 0).all())


@pytest.mark.parametrize("method", [name for name, each in registered_methods().items() if CRITIC in each.needs])
def test_the_critic_loss_gives_the_actor_no_gradient(method):
    settings = make_settings(method)
    networks = make_networks(settings)
    outcome = build_method(settings, "critic", SCORE)(networks, make_batch(), torch.Generator().manual_seed(0), 0.0)
    outcome.loss.backward()
    assert all(parameter.grad is None for parameter in networks.actor.parameters())
    assert all(parameter.grad is not None for parameter in networks.critic.parameters())


@pytest.mark.parametrize("method", [name for name in registered_methods() if name != "likelihood"])
def test_the_actor_gradient_treats_values_targets_and_states_as_constants(method):
    """Joint loss: the actor's gradient equals that of the actor's own terms; target networks receive none at all."""
    settings = make_settings(method)
    networks = make_networks(settings)
    outcome = build_method(settings, "train", SCORE)(networks, make_batch(), torch.Generator().manual_seed(0), 0.0)
    outcome.loss.backward()
    joint = [parameter.grad.clone() for parameter in networks.actor.parameters()]
    for target in (networks.delayed_actor, networks.target_critic):
        if target is not None:
            assert all(parameter.grad is None for parameter in target.parameters())
    # With the critic's own loss scaled by changing its penalty, the actor's gradient must stay the same.
    other = make_settings(method, variance_penalty=50.0)
    for parameter in networks.actor.parameters():
        parameter.grad = None
    outcome = build_method(other, "train", SCORE)(networks, make_batch(), torch.Generator().manual_seed(0), 0.0)
    outcome.loss.backward()
    again = [parameter.grad for parameter in networks.actor.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(joint, again, strict=True))


def test_the_critic_gets_no_gradient_from_the_actor_loss():
    """A policy moved far away changes the samples' probabilities, not the gradient of the critic on fixed samples."""
    settings = make_settings("actor-critic", variance_penalty=0.0)
    networks = make_networks(settings)
    batch = make_batch()
    outcome = build_method(settings, "train", SCORE)(networks, batch, torch.Generator().manual_seed(0), 0.0)
    critic_part = outcome.measurements["critic_loss"]
    outcome.loss.backward()
    joint = [parameter.grad.clone() for parameter in networks.critic.parameters()]
    for parameter in networks.critic.parameters():
        parameter.grad = None
    mixed = make_settings("actor-critic", variance_penalty=0.0, likelihood_weight=9.0)
    again = build_method(mixed, "train", SCORE)(networks, batch, torch.Generator().manual_seed(0), 0.0)
    again.loss.backward()
    assert torch.allclose(critic_part, again.measurements["critic_loss"], atol=1e-12)
    ours = [parameter.grad for parameter in networks.critic.parameters()]
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(joint, ours, strict=True))


def test_target_networks_move_exactly_by_the_formula():
    settings = make_settings("actor-critic")
    networks = make_networks(settings)
    target, online = networks.delayed_actor, make_networks(make_settings("likelihood", likelihood_weight=0.0)).actor
    for parameter in online.parameters():
        parameter.data += 0.3
    before = copy.deepcopy(target)
    polyak_update(target, online, 0.125)
    for mine, old, theirs in zip(target.parameters(), before.parameters(), online.parameters(), strict=True):
        assert torch.equal(mine, 0.125 * theirs + (1 - 0.125) * old)
    polyak_update(target, online, 1.0)
    assert all(torch.equal(a, b) for a, b in zip(target.parameters(), online.parameters(), strict=True))


def test_several_samples_average_over_the_same_example():
    """M samples of one example cost what M examples do, and their loss is a mean, not a sum."""
    one, four = make_settings("actor-critic"), make_settings("actor-critic", samples=4)
    networks = make_networks(one)
    batch = make_batch()
    repeated = build_method(one, "train", SCORE)(networks, batch.repeat(4), torch.Generator().manual_seed(0), 0.0)
    sampled = build_method(four, "train", SCORE)(networks, batch, torch.Generator().manual_seed(0), 0.0)
    assert torch.allclose(repeated.loss, sampled.loss, atol=1e-12)
