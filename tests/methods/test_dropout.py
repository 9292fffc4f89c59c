"""Dropout in every method: the policy that samples is the policy whose gradient is taken."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from method_worlds import SCORE, make_batch, make_settings
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.decoding.sampling import decode_greedily
from seqcritic.methods import self_critical
from seqcritic.methods.build import build_method, build_networks
from seqcritic.methods.experience import gather_experience
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.settings.io import settings_from
from seqcritic.settings.tree import Settings
from seqcritic.tensors.plain_loops import use_plain_loops

NUM_TOKENS = 6


def make(method: str, reward_dropout: str, **changes: object) -> tuple[Settings, Networks]:
    """Return settings and float64 networks whose actor and critic drop four units of ten."""
    plain = make_settings(method, reward_dropout=reward_dropout, **changes).model_dump()
    for network in ("actor", "critic"):
        plain[network]["dropout"] = 0.4
    settings = settings_from(plain)
    networks = build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(3))
    for network in networks.named().values():
        network.double()
    return settings, networks


def seeded(number: int = 5) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def test_masks_drop_their_share_and_keep_the_mean():
    _, networks = make("likelihood", "held")
    masks = networks.actor.draw_masks(2_000, seeded())
    assert masks.between.shape == (2_000, 0)  # of an encoder of one layer
    for mask in masks[:3]:
        assert float((mask == 0).double().mean()) == pytest.approx(0.4, abs=0.02)
        assert float(mask.mean()) == pytest.approx(1.0, abs=0.03)
        assert not torch.equal(mask[0], mask[1]), "every row has its own"


@pytest.mark.parametrize("reward_dropout", ["held", "none"])
@pytest.mark.parametrize("plain", [False, True], ids=["ours", "plain loops"])
@pytest.mark.parametrize("method", ["reinforce", "self-critical", "minimum-risk", "mixer"])
def test_what_is_scored_is_what_was_drawn(method, plain, reward_dropout):
    settings, networks = make(method, reward_dropout, likelihood_weight=0.5, samples=3)

    def compare() -> None:
        seen = gather_experience(networks, make_batch(), settings.method, SCORE, True, seeded())
        drawn, mask = seen.rollout.sample.token_log_probabilities, seen.rollout.sample.mask
        scored = token_log_probabilities(seen.logits, seen.rollout.sample.tokens)
        assert torch.allclose(drawn[mask], scored[mask], rtol=0, atol=1e-12)
        assert (seen.memory.masks is not None) == (reward_dropout == "held")

    if plain:
        with use_plain_loops():
            compare()
    else:
        compare()


def test_a_delayed_actor_drops_what_the_trained_one_drops():
    settings, networks = make("actor-critic", "held", gamma_theta=0.1)
    assert networks.delayed_actor is not None
    seen = gather_experience(networks, make_batch(), settings.method, SCORE, True, seeded())
    sample = seen.rollout.sample
    assert torch.allclose(
        token_log_probabilities(seen.logits, sample.tokens), sample.token_log_probabilities, rtol=0, atol=1e-12
    ), "equal weights"


def test_the_greedy_baseline_is_that_of_the_policy_that_samples(monkeypatch):
    settings, networks = make("self-critical", "held")
    found: list[Tensor] = []

    def watch(actor, memory, maximum_lengths):
        found.append(memory.masks.features)
        return decode_greedily(actor, memory, maximum_lengths)

    monkeypatch.setattr(self_critical, "decode_greedily", watch)
    build_method(settings, "train", SCORE)(networks, make_batch(), seeded(), 0.0)
    assert torch.equal(found[0], networks.actor.draw_masks(len(make_batch()), seeded()).features)


def likelihood_of(networks: Networks, batch: Batch, generator: torch.Generator | None) -> float:
    actor = networks.actor
    masks = None if generator is None else actor.draw_masks(len(batch), generator)
    logits, _ = actor.score(actor.encode(batch.sources, batch.source_mask, masks), batch.references)
    taken = torch.log_softmax(logits, 2).gather(2, batch.references[:, :, None])[:, :, 0]
    return -torch.where(batch.reference_mask, taken, 0.0).sum().item() / len(batch)


@pytest.mark.parametrize("reward_dropout", ["held", "none"])
@pytest.mark.parametrize("method", [name for name in registered_methods() if name != "likelihood"])
def test_the_likelihood_term_has_dropout_whatever_the_rewards_have(method, reward_dropout):
    settings, networks = make(method, reward_dropout, likelihood_weight=0.5)
    outcome = build_method(settings, "train", SCORE)(networks, make_batch(), seeded(), 0.0)
    found = outcome.measurements["likelihood_loss"].item()
    assert found != pytest.approx(likelihood_of(networks, make_batch(), None), abs=1e-3)
    if method not in ("raml",):  # which draws its targets first
        assert found == pytest.approx(likelihood_of(networks, make_batch(), seeded()), abs=1e-10)


@pytest.mark.parametrize("method", ["reinforce", "actor-critic", "minimum-risk", "direct-loss"])
def test_without_dropout_in_rewards_an_update_has_none(method):
    settings, networks = make(method, "none")
    found = build_method(settings, "train", SCORE)(networks, make_batch(), seeded(), 0.0)
    networks.actor.decoder.dropout = 0.0
    plain = build_method(settings, "train", SCORE)(networks, make_batch(), seeded(), 0.0)
    assert found.measurements["actor_loss"].item() == pytest.approx(plain.measurements["actor_loss"].item(), abs=1e-12)


def test_the_actor_follows_what_the_critic_says_without_dropout():
    settings, networks = make("actor-critic", "none")
    with_masks = CriticTraining(settings.method, SCORE, True)(networks, make_batch(), seeded(), 0.0)
    networks.critic.decoder.dropout = 0.0
    without = CriticTraining(settings.method, SCORE, True)(networks, make_batch(), seeded(), 0.0)
    assert with_masks.measurements["q_mean"].item() == pytest.approx(without.measurements["q_mean"].item(), abs=1e-12)
    assert with_masks.loss.item() != pytest.approx(without.loss.item(), abs=1e-6)
