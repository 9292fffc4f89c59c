"""The loops with a hand-written backward pass against PyTorch's graph of the straightforward ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.config import ActorSettings, CriticSettings
from seqcritic.models.actor import Actor
from seqcritic.models.critic import Critic
from seqcritic.models.recurrence import attended_scan, gated_scan, reference_loops

SIZES = {"embedding": 4, "hidden": 5, "attention": 3, "initial_range": None}
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(5) < LENGTHS[:, None]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def test_the_gradient_of_the_gated_scan_is_right():
    assert torch.autograd.gradcheck(gated_scan, (numbers(3, 2, 2, 12), numbers(2, 12, 4), numbers(2, 12)))


@pytest.mark.parametrize("num_steps", [1, 2, 4])
def test_the_gradient_of_the_attended_scan_is_right(num_steps):
    penalty = torch.zeros(2, 3, dtype=torch.float64)
    penalty[1, 2] = -torch.inf
    arguments = (
        numbers(num_steps - 1, 2, 12),
        numbers(4),
        numbers(2, 3, 5),
        numbers(2, 3, 6),
        penalty,
        numbers(18, 4),
        numbers(18),
        numbers(6),
        numbers(12, 5),
    )
    assert torch.autograd.gradcheck(attended_scan, arguments)


def gradients(network: torch.nn.Module, output: Tensor, states: Tensor) -> list[Tensor]:
    weighted = (output * numbers(*output.shape).detach()).sum() + (states * numbers(*states.shape).detach()).sum()
    parameters = list(network.parameters())
    found = torch.autograd.grad(weighted, parameters, allow_unused=True, materialize_grads=True)
    return list(found)


@pytest.mark.parametrize("num_tokens", [7, 40])  # fewer and more than there are tokens in the batch
@pytest.mark.parametrize("encoder", ["bidirectional", "window"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("num_steps", [1, 6])
def test_an_actor_equals_its_reference(num_tokens, encoder, tied, num_steps):
    settings = ActorSettings(**SIZES, encoder=encoder, tied=tied)
    actor = Actor(settings, num_tokens, num_tokens, torch.Generator().manual_seed(1)).double()
    generator = torch.Generator().manual_seed(2)
    sources = torch.randint(num_tokens, (3, 5), generator=generator)
    targets = torch.randint(num_tokens, (3, num_steps), generator=generator)

    def run() -> tuple[Tensor, list[Tensor]]:
        logits, states = actor.score(actor.encode(sources, MASK), targets)
        return logits.detach(), gradients(actor, logits, states)

    ours, our_gradients = run()
    with reference_loops():
        theirs, their_gradients = run()
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    for our, their in zip(our_gradients, their_gradients, strict=True):
        assert torch.allclose(our, their, rtol=0, atol=1e-10)


def test_a_critic_equals_its_reference_and_leaves_the_actor_alone():
    critic = Critic(CriticSettings(**SIZES), 7, 5, torch.Generator().manual_seed(1)).double()
    predictions = torch.randint(7, (3, 6), generator=torch.Generator().manual_seed(2))
    actor_states = numbers(3, 6, 5)

    def run() -> list[Tensor]:
        values = critic.values(critic.encode(predictions[:, :5], MASK), predictions, actor_states)
        return [values.detach(), *gradients(critic, values, values)]

    ours = run()
    with reference_loops():
        theirs = run()
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our, their, rtol=0, atol=1e-10)
    assert actor_states.grad is None


def test_without_a_graph_the_same_values_come_out():
    actor = Actor(ActorSettings(**SIZES), 7, 7, torch.Generator().manual_seed(1)).double()
    tokens = torch.randint(7, (3, 5), generator=torch.Generator().manual_seed(2))
    recorded = actor.score(actor.encode(tokens, MASK), tokens)[0]
    with torch.no_grad():
        plain = actor.score(actor.encode(tokens, MASK), tokens)[0]
    assert torch.equal(recorded, plain)
