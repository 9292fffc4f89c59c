"""A target network at rate 1 is no copy: it is the present network, bit for bit."""

from __future__ import annotations

import pytest
import torch

from seqcritic.contracts.batch import Batch
from seqcritic.data.vocabulary import END
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import settings_from
from seqcritic.settings.tree import Settings
from seqcritic.training.learner import recipe_learner

NUM_TOKENS = 6


def make_settings(**method: object) -> Settings:
    sizes = {"embedding": 5, "hidden": 6, "attention": 4, "initial_range": None}
    return settings_from({"actor": sizes, "critic": sizes, "method": {"name": "actor-critic", **method}})


def make_batch() -> Batch:
    tokens = torch.randint(1, NUM_TOKENS, (4, 4), generator=torch.Generator().manual_seed(4))
    tokens[:, -1] = END
    mask = torch.ones_like(tokens, dtype=torch.bool)
    return Batch(tokens.flip(0), mask, tokens, mask)


@pytest.mark.parametrize("phase", ["critic", "train"])
@pytest.mark.parametrize(("speed", "is_present"), [(1.0, True), (0.5, False)])
def test_the_target_critic_of_speed_one_is_the_present_critic(speed: float, is_present: bool, phase: str) -> None:
    learner = recipe_learner(make_settings(gamma_phi=speed), NUM_TOKENS, NUM_TOKENS, EditDistanceScore(normalise=False))
    learner.start_phase(phase)
    for _ in range(3):
        learner.update(make_batch(), 0.01)
        critic, target = learner.networks.critic, learner.networks.target_critic
        assert critic is not None
        assert target is not None
        same = [torch.equal(one, other) for one, other in zip(critic.parameters(), target.parameters(), strict=True)]
        assert all(same) == is_present


def test_a_delayed_actor_of_speed_one_is_the_actor_itself() -> None:
    learner = recipe_learner(make_settings(gamma_theta=1), NUM_TOKENS, NUM_TOKENS, EditDistanceScore(normalise=False))
    assert learner.networks.delayed_actor is None
    assert learner.networks.sampling_actor is learner.networks.actor
    delayed = recipe_learner(make_settings(gamma_theta=0.5), NUM_TOKENS, NUM_TOKENS, EditDistanceScore(normalise=False))
    assert delayed.networks.sampling_actor is not delayed.networks.actor
