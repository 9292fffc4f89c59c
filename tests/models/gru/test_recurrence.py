"""The loops with a hand-written backward pass against PyTorch's graph of the straightforward ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.recurrence import attended_scan, gated_scan
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.tensors.packing import gather_rows, pack, scatter_rows
from seqcritic.tensors.plain_loops import use_plain_loops

SIZES = {"embedding": 4, "hidden": 5, "attention": 3, "initial_range": None}
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(5) < LENGTHS[:, None]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


UNEQUAL = torch.arange(4) < torch.tensor([[2], [4], [1]])
FULL = torch.ones(3, 4, dtype=torch.bool)


@pytest.mark.parametrize("mask", [UNEQUAL, FULL, FULL[:, :1]], ids=["different lengths", "full", "one step"])
def test_the_gradient_of_the_gated_scan_is_right(mask):
    num_tokens = int(mask.sum())
    packing = pack(mask)
    arguments = (numbers(2, num_tokens, 12), numbers(2, 12, 4), numbers(2, 12))
    assert torch.autograd.gradcheck(lambda *tensors: gated_scan(*tensors, packing), arguments)


@pytest.mark.parametrize("mask", [UNEQUAL, FULL, FULL[:, :1]], ids=["different lengths", "full", "one step"])
def test_the_gradient_of_the_attended_scan_is_right(mask):
    packing = pack(mask)
    attention_bias = torch.zeros(3, 3, dtype=torch.float64)
    attention_bias[1, 2] = -torch.inf
    arguments = (
        numbers(int(mask.sum()) - 3, 12),
        numbers(4),
        numbers(3, 3, 5),
        numbers(3, 3, 6),
        attention_bias,
        numbers(18, 4),
        numbers(18),
        numbers(6),
        numbers(12, 5),
    )

    def scan(inputs: Tensor, initial: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
        return attended_scan(packing, inputs, initial, rest[:3], *rest[3:])

    assert torch.autograd.gradcheck(scan, arguments)


def test_packing_takes_every_unmasked_token_once_and_in_order():
    packing = pack(UNEQUAL)
    assert packing.counts == (3, 2, 1, 1)
    assert packing.order.tolist() == [1, 0, 2]
    assert packing.positions.tolist() == [4, 0, 8, 5, 1, 6, 7]
    assert packing.previous.tolist() == [0, 1, 3, 5]
    assert packing.mirrored.tolist() == [6, 4, 2, 5, 1, 3, 0]
    rows = numbers(7, 2)
    padded = scatter_rows(rows, packing.positions, 12)
    assert torch.equal(gather_rows(padded, packing.positions), rows)
    assert not padded.view(3, 4, 2)[~UNEQUAL].any()
    assert torch.autograd.gradcheck(
        lambda some: scatter_rows(gather_rows(some, packing.mirrored), packing.positions, 12), rows
    )


def gradients(network: torch.nn.Module, output: Tensor, states: Tensor) -> list[Tensor]:
    weighted = (output * numbers(*output.shape).detach()).sum() + (states * numbers(*states.shape).detach()).sum()
    parameters = list(network.parameters())
    found = torch.autograd.grad(weighted, parameters, allow_unused=True, materialize_grads=True)
    return list(found)


@pytest.mark.parametrize("num_tokens", [7, 40])  # fewer and more than there are tokens in the batch
@pytest.mark.parametrize("encoder", ["bidirectional", "three layers", "window"])
@pytest.mark.parametrize("output_layer", [{}, {"output_width": 3}, {"tied": True}], ids=["own", "projected", "tied"])
@pytest.mark.parametrize("num_steps", [1, 6])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_an_actor_equals_its_plain_form(num_tokens, encoder, output_layer, num_steps, dropout):
    chosen = {"encoder_layers": 3} if encoder == "three layers" else {"encoder": encoder}
    settings = GruActorSettings(**SIZES, **chosen, dropout=dropout, **output_layer)
    actor = RecurrentActor(settings, num_tokens, num_tokens, torch.Generator().manual_seed(1)).double()
    generator = torch.Generator().manual_seed(2)
    sources = torch.randint(num_tokens, (3, 5), generator=generator)
    targets = torch.randint(num_tokens, (3, num_steps), generator=generator)
    counted = torch.arange(num_steps) < torch.tensor([[3], [1], [6]])

    def run() -> tuple[Tensor, list[Tensor]]:
        memory = actor.encode(sources, MASK, actor.draw_masks(3, torch.Generator().manual_seed(3)))
        features, states = actor.features(memory, targets, counted)
        logits, states = actor.logits_of(features).padded()[counted], states[counted]
        return logits.detach(), gradients(actor, logits, states)

    ours, our_gradients = run()
    with use_plain_loops():
        theirs, their_gradients = run()
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    for our, their in zip(our_gradients, their_gradients, strict=True):
        assert torch.allclose(our, their, rtol=0, atol=1e-10)


def test_a_critic_equals_its_plain_form_and_leaves_the_actor_alone():
    critic = RecurrentCritic(GruCriticSettings(**SIZES), 7, 5, torch.Generator().manual_seed(1)).double()
    predictions = torch.randint(7, (3, 6), generator=torch.Generator().manual_seed(2))
    actor_states = numbers(3, 6, 5)

    def run() -> list[Tensor]:
        values = critic.values(critic.encode(predictions[:, :5], MASK), predictions, actor_states)
        return [values.detach(), *gradients(critic, values, values)]

    ours = run()
    with use_plain_loops():
        theirs = run()
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our, their, rtol=0, atol=1e-10)
    assert actor_states.grad is None


def test_without_a_graph_the_same_values_come_out():
    actor = RecurrentActor(GruActorSettings(**SIZES), 7, 7, torch.Generator().manual_seed(1)).double()
    tokens = torch.randint(7, (3, 5), generator=torch.Generator().manual_seed(2))
    recorded = actor.score(actor.encode(tokens, MASK), tokens)[0]
    with torch.no_grad():
        plain = actor.score(actor.encode(tokens, MASK), tokens)[0]
    assert torch.equal(recorded, plain)
