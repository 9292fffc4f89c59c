"""Scheduled sampling: the schedules, what is fed, what is asked for, and likelihood at ε = 1."""

from __future__ import annotations

import itertools

import pytest
import torch

from method_worlds import SCORE, make_batch, make_networks, make_settings
from seqcritic.draws import choose, draw_numbers
from seqcritic.methods import losses, scheduled_sampling
from seqcritic.methods.build import build_method
from seqcritic.methods.scheduled_sampling import ScheduledSamplingSettings, mix_inputs, reference_probability
from seqcritic.testing.worlds import gradients, largest_difference

NUM_EXAMPLES = 40
DECAYS = ("linear", "exponential", "inverse-sigmoid")


@pytest.mark.parametrize("decay", DECAYS)
def test_epsilon_1_is_likelihood_exactly(decay):
    settings = make_settings("scheduled-sampling", scheduled_sampling={"decay": decay, "final": 1.0})
    networks, batch = make_networks(settings), make_batch()
    for progress in (0.0, 0.7):
        ours = build_method(settings, "train", SCORE)(networks, batch, torch.Generator().manual_seed(0), progress)
        theirs = build_method(settings, "actor", SCORE)(networks, batch, torch.Generator(), progress)
        assert torch.equal(ours.loss, theirs.loss)
        assert largest_difference(gradients(ours.loss, networks.actor), gradients(theirs.loss, networks.actor)) == 0
        assert ours.measurements["reference_probability"] == 1


def test_the_inputs_match_the_coins_and_the_targets_stay_the_references(monkeypatch):
    settings = make_settings("scheduled-sampling", scheduled_sampling={"decay": "linear", "final": 0.2})
    networks, batch = make_networks(settings), make_batch(NUM_EXAMPLES)
    seen = {}

    def spy(*arguments: object) -> torch.Tensor:
        seen["coins"], seen["numbers"] = arguments[3:]
        seen["inputs"] = mix_inputs(*arguments)
        return seen["inputs"]

    monkeypatch.setattr(scheduled_sampling, "mix_inputs", spy)
    outcome = build_method(settings, "train", SCORE)(networks, batch, torch.Generator().manual_seed(0), 0.5)
    inputs, coins, actor = seen["inputs"], seen["coins"], networks.actor
    probability = coins.double().mean().item()
    assert probability == pytest.approx(0.6, abs=4 * (0.6 * 0.4 / coins.numel()) ** 0.5)

    memory = actor.encode(batch.sources, batch.source_mask)
    logits, _ = actor.score(memory, inputs)
    last = inputs.shape[1] - 1
    assert torch.equal(inputs[:, last], batch.references[:, last])
    for step in range(last):
        drawn = choose(torch.softmax(logits[:, step], 1), seen["numbers"][step])
        fed = torch.where(coins[step], batch.references[:, step], drawn)
        assert torch.equal(inputs[:, step], fed)
        assert not torch.equal(drawn, batch.references[:, step])
    expected = losses.likelihood_loss(torch.log_softmax(logits, 2), batch.references, batch.reference_mask)
    torch.testing.assert_close(outcome.loss, expected)  # one sum in two ways: processors differ in the last bit


def test_a_drawn_end_token_does_not_end_the_sequence():
    networks, batch = make_networks(make_settings("scheduled-sampling")), make_batch(NUM_EXAMPLES)
    actor = networks.actor
    memory = actor.encode(batch.sources, batch.source_mask)
    never = torch.zeros(batch.references.t().shape, dtype=torch.bool)
    numbers = draw_numbers(torch.Generator().manual_seed(1), *never.shape)
    inputs = mix_inputs(actor, memory, batch.references, never, numbers)
    ended = (inputs[:, 0] == 0).nonzero()[:, 0]
    assert len(ended) > 0
    assert bool((inputs[ended, 1] != 0).any())


@pytest.mark.parametrize("decay", DECAYS)
def test_epsilon_falls_to_its_final_value(decay):
    settings = ScheduledSamplingSettings(decay=decay, final=0.3, steepness=50)
    curve = [reference_probability(settings, progress / 10) for progress in range(11)]
    assert curve[0] == pytest.approx(50 / 51 if decay == "inverse-sigmoid" else 1)
    assert curve[-1] == pytest.approx(0.3)
    assert all(later < earlier for earlier, later in itertools.pairwise(curve))


def test_the_curves_are_those_of_the_source():
    def probability(decay: str, progress: float) -> float:
        return reference_probability(ScheduledSamplingSettings(decay=decay, final=0.25, steepness=100), progress)

    assert probability("linear", 0.5) == pytest.approx(0.625)
    assert probability("exponential", 0.5) == pytest.approx(0.5)
    # k / (k + e^{x c}) with e^c = 300
    assert probability("inverse-sigmoid", 0.5) == pytest.approx(100 / (100 + 300**0.5))
