"""The networks a method needs, declared as data, and target copies of them."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from method_worlds import NUM_TOKENS, SCORE, make_batch, make_settings
from seqcritic.contracts.method_registry import METHODS, register_method, registered_methods
from seqcritic.contracts.networks import CRITIC, NetworkSpec, polyak_update
from seqcritic.methods.build import build_networks
from seqcritic.methods.reinforce_multisample import ReinforceMultisample
from seqcritic.training.learner import recipe_learner


class Anchored(ReinforceMultisample):
    """A method with a frozen actor and one that follows, under names of its own."""

    name = "anchored"
    needs = (
        NetworkSpec("anchor", copy_of="actor"),
        NetworkSpec("slow_actor", copy_of="actor", rate=0.25),
    )


@pytest.fixture
def anchored(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(METHODS, "_classes", dict(METHODS._classes))
    return register_method(Anchored).name


@pytest.mark.parametrize("name", registered_methods())
def test_what_is_built_is_what_is_needed(name: str):
    settings = make_settings(name)
    networks = build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(0))
    assert set(networks.named()) == {"actor", *(spec.name for spec in registered_methods()[name].needs)}
    assert set(registered_methods()[name].trains) <= set(networks.named())
    for spec in registered_methods()[name].needs:
        trained = all(weight.requires_grad for weight in networks[spec.name].parameters())
        assert trained == (spec.copy_of is None)
        assert not (spec.copy_of and any(weight.requires_grad for weight in networks[spec.name].parameters()))


@pytest.mark.parametrize("changes", [{"gamma_theta": 1.0}, {"correction": 0.5}])
def test_an_actor_without_delay_draws_itself(changes: dict[str, float]):
    settings = make_settings("actor-critic", **changes)
    networks = build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator())
    assert set(networks.named()) == {"actor", "critic", "target_critic"}
    assert networks.sampling_actor is networks.actor


def test_a_target_critic_of_rate_one_is_still_a_network_of_its_own():
    settings = make_settings("actor-critic", gamma_phi=1.0)
    assert "target_critic" in build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator()).named()


def test_target_copies_average_weights_and_copy_buffers():
    online = nn.BatchNorm1d(3)
    target = copy.deepcopy(online)
    with torch.no_grad():
        online.weight.fill_(3.0)
        online(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)))  # moves the running means
    polyak_update(target, online, 0.25)
    assert torch.equal(target.weight, torch.full((3,), 1.5))
    assert not bool((online.running_mean == 0).any())
    assert torch.equal(target.running_mean, online.running_mean)
    assert torch.equal(target.num_batches_tracked, torch.tensor(1))


@pytest.mark.parametrize("shape", [(3, 1), (70, 7), (1, 300), (11, 5, 9)])
def test_large_weights_are_followed_piece_by_piece_to_the_same_bits(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("seqcritic.contracts.networks.AT_ONCE", 50)
    generator = torch.Generator().manual_seed(0)
    target, online = nn.ParameterList(), nn.ParameterList()
    for module in (target, online):
        # A small weight beside it, and one whose rows are not next to each other in memory.
        large, other = torch.randn(2, *shape, generator=generator)
        module.extend(nn.Parameter(each) for each in (large.clone(), large[:1, :1].clone(), other.transpose(0, 1)))
    expected = [(1 - 0.3) * own + 0.3 * their for own, their in zip(target, online, strict=True)]
    whole = [own.detach().clone() for own in target]
    for own, their in zip(whole, online, strict=True):
        own.mul_(1 - 0.3).add_(their.detach(), alpha=0.3)
    polyak_update(target, online, 0.3)
    for found, exact, near in zip(target, whole, expected, strict=True):
        assert torch.equal(found, exact)
        torch.testing.assert_close(found, near)


def test_copies_of_a_method_follow_at_their_rates_and_a_frozen_one_stays(anchored: str):
    settings = make_settings(anchored)
    learner = recipe_learner(settings, NUM_TOKENS, NUM_TOKENS, SCORE)
    learner.start_phase("train")
    networks = learner.networks
    before = [weight.clone() for weight in networks.actor.parameters()]
    learner.update(make_batch(), 0.1)
    actor, anchor, slow = (list(networks[name].parameters()) for name in ("actor", "anchor", "slow_actor"))
    assert any(not torch.equal(now, old) for now, old in zip(actor, before, strict=True))
    assert all(torch.equal(now, old) for now, old in zip(anchor, before, strict=True))
    for now, half, old in zip(slow, actor, before, strict=True):
        assert torch.allclose(now, 0.25 * half + 0.75 * old)
    learner.start_phase("train")
    assert all(torch.equal(now, new) for now, new in zip(anchor, actor, strict=True)), "each phase begins anew"
    stored = learner.tensors()["networks"]
    assert {name.partition(".")[0] for name in stored} == {"actor", "anchor", "slow_actor"}


def test_networks_that_nothing_could_build_are_refused():
    assert NetworkSpec("critic") == CRITIC
    with pytest.raises(ValueError, match="a network 'oracle' is neither the critic, nor the baseline, nor a copy"):
        NetworkSpec("oracle")
