"""The penalty towards the anchor: the exact divergence by enumeration, in every method, and nothing at weight 0."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from method_worlds import NUM_TOKENS, SCORE, make_networks, make_settings
from method_worlds import make_batch as make_larger_batch
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.methods import losses, rollout
from seqcritic.methods.build import build_method, build_networks
from seqcritic.methods.reinforce_multisample import ReinforceMultisample
from seqcritic.settings.io import settings_from
from seqcritic.settings.methods import method_section
from seqcritic.testing.worlds import World, gradients, largest_difference, make_actor, make_batch, make_world
from seqcritic.training.learner import Learner, recipe_learner

METHODS = [name for name in registered_methods() if name != "likelihood"]


def step_divergences(world: World, anchored: World) -> Tensor:
    """KL(p ‖ p_0) at every step of every sequence, [N, T], 0 after the end."""
    ours, theirs = (torch.log_softmax(each.logits, 2) for each in (world, anchored))
    return torch.where(world.mask, losses.divergences(ours, theirs.detach()), 0.0)


def run(actor, anchor, world: World, row: int, weight: float, monkeypatch: pytest.MonkeyPatch):
    """What a method makes of one sequence, drawn twice, so that the rewards cancel and the penalty is all there is."""
    monkeypatch.setattr(rollout, "sample", lambda *rest: world.sample_of([row, row]))
    settings = method_section()(
        name="reinforce-multisample", reinforce_multisample={"samples": 2}, kl_weight=weight, reward_dropout="held"
    )
    method = ReinforceMultisample(settings, SCORE, True)
    return method(Networks(actor, anchor=anchor), make_batch(), torch.Generator(), 0.0)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_its_expectation_is_the_divergence_of_whole_sequences(dropout: float, monkeypatch: pytest.MonkeyPatch):
    actor, anchor = make_actor(0, dropout), make_actor(1, dropout).requires_grad_(False)
    masks = actor.draw_masks(1, torch.Generator())
    world, anchored = make_world(actor, masks=masks), make_world(anchor, masks=masks)
    probabilities, others = world.sequence_probabilities.detach(), anchored.sequence_probabilities
    expected = float((probabilities * (probabilities / others).log()).sum())
    found, total = 0.0, [torch.zeros_like(parameter) for parameter in actor.parameters()]
    for row, probability in enumerate(probabilities):
        outcome = run(actor, anchor, world, row, 0.7, monkeypatch)
        found += float(probability * outcome.measurements["kl_divergence"])
        for sum_so_far, gradient in zip(total, gradients(outcome.loss, actor), strict=True):
            sum_so_far += probability * gradient
    assert found == pytest.approx(expected, abs=1e-10)
    assert expected > 0.01
    exact = gradients(0.7 * (probabilities * step_divergences(world, anchored).sum(1)).sum(), actor)
    assert largest_difference(total, exact) < 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_every_method_adds_it_with_its_weight(method: str):
    def outcome_of(weight: float, moved: bool):
        settings = make_settings(method, kl_weight=weight, likelihood_weight=0.3)
        networks = make_networks(settings)
        if networks.anchor is not None and moved:
            for parameter in networks.anchor.parameters():
                parameter += 0.2 * torch.sin(torch.arange(parameter.numel())).view_as(parameter)
        method_of = build_method(settings, "train", SCORE)
        return networks, method_of(networks, make_larger_batch(), torch.Generator().manual_seed(0), 0.0)

    _, plain = outcome_of(0.0, moved=True)
    networks, penalised = outcome_of(0.5, moved=True)
    divergence = penalised.measurements["kl_divergence"]
    assert float(divergence) > 1e-3
    assert (penalised.loss - plain.loss).item() == pytest.approx(0.5 * float(divergence), abs=1e-10)
    penalised.loss.backward()
    assert all(parameter.grad is None for parameter in networks.anchor.parameters())
    _, at_start = outcome_of(0.5, moved=False)
    assert float(at_start.measurements["kl_divergence"]) == pytest.approx(0, abs=1e-12)
    assert {"kl_divergence"} == penalised.measurements.keys() - plain.measurements.keys()


@pytest.mark.parametrize("method", registered_methods())
def test_the_anchor_is_built_only_where_it_is_used(method: str):
    for weight in (0.0, 0.1):
        settings = make_settings(method, kl_weight=weight)
        networks = build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator())
        assert (networks.anchor is not None) == (weight > 0 and method != "likelihood")


def make_learner(method: str, **changes: object) -> Learner:
    tree = make_settings(method, kl_weight=0.2, **changes).model_dump(mode="json")
    return recipe_learner(settings_from(tree | {"precision": "float64"}), NUM_TOKENS, NUM_TOKENS, SCORE)


@pytest.mark.parametrize("method", ["actor-critic", "reinforce-multisample", "minimum-risk"])
def test_the_anchor_stays_where_the_phase_began_and_is_resumed(method: str):
    learner = make_learner(method)
    learner.start_phase("train")
    start = learner.actor_weights()
    measured = [learner.update(make_larger_batch(), 0.05) for _ in range(3)]
    assert measured[0]["kl_divergence"] == pytest.approx(0, abs=1e-10)
    assert measured[2]["kl_divergence"] > 1e-6
    anchor = dict(learner.networks.anchor.named_parameters())
    assert all(torch.equal(anchor[name], start[name]) for name in anchor)
    stored = copy.deepcopy(learner.tensors())
    rest = [learner.update(make_larger_batch(), 0.05) for _ in range(2)]
    other = make_learner(method)
    other.start_phase("train")
    other.load_tensors(stored, "here")
    assert [other.update(make_larger_batch(), 0.05) for _ in range(2)] == rest
    learner.start_phase("train")
    now = learner.actor_weights()
    assert all(torch.equal(parameter, now[name]) for name, parameter in learner.networks.anchor.named_parameters())
