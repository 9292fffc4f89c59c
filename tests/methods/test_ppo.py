"""PPO: generalised advantages by hand, and REINFORCE with the critic's state value at λ = 1 and one step."""

from __future__ import annotations

import pytest
import torch

from method_worlds import SCORE, make_batch, make_networks, make_settings
from seqcritic.methods import losses
from seqcritic.methods.build import build_method
from seqcritic.tensors.plain_loops import use_plain_loops
from seqcritic.testing.worlds import gradients, largest_difference


def test_advantages_are_those_of_a_table_made_by_hand():
    rewards = torch.tensor([[1.0, 0.0, 2.0], [0.5, -1.0, 9.0]], dtype=torch.float64)
    values = torch.tensor([[2.0, 1.0, 3.0], [1.0, 0.5, 7.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    # δ: 1 + 1 − 2 = 0,  0 + 3 − 1 = 2,  2 − 3 = −1;   0.5 + 0.5 − 1 = 0,  −1 − 0.5 = −1.5
    tables = {
        0.0: [[0.0, 2.0, -1.0], [0.0, -1.5, 0.0]],
        0.5: [[0.0 + 0.5 * 1.5, 2.0 - 0.5, -1.0], [-0.75, -1.5, 0.0]],
        1.0: [[1.0, 1.0, -1.0], [-1.5, -1.5, 0.0]],  # 3 − 2, 2 − 1, 2 − 3; −0.5 − 1, −1 − 0.5
    }
    for decay, table in tables.items():
        assert losses.generalised_advantages(rewards, values, mask, decay).tolist() == table


@pytest.mark.parametrize("plain", [False, True], ids=["ours", "plain loops"])
@pytest.mark.parametrize("changes", [{}, {"samples": 2, "likelihood_weight": 0.3}, {"target_samples": 2}])
def test_at_lambda_1_and_one_step_it_is_reinforce_with_the_critic(changes: dict[str, object], plain: bool):
    def run(method: str, **own: object):
        settings = make_settings(method, **changes, **own)
        networks = make_networks(settings)
        made = build_method(settings, "train", SCORE)
        if plain:
            with use_plain_loops():
                outcome = made(networks, make_batch(), torch.Generator().manual_seed(0), 0.0)
        else:
            outcome = made(networks, make_batch(), torch.Generator().manual_seed(0), 0.0)
        return [gradients(outcome.loss, network) for network in (networks.actor, networks.critic)]

    ours, theirs = run("ppo", ppo={"gae_lambda": 1.0, "steps": 1}), run("reinforce-critic")
    for found, expected in zip(ours, theirs, strict=True):
        assert largest_difference(found, expected) < 1e-10
    other = run("ppo", ppo={"gae_lambda": 0.5, "steps": 1})
    assert largest_difference(other[0], theirs[0]) > 1e-4
    assert largest_difference(other[1], theirs[1]) < 1e-10, "the critic learns the same"


def test_advantages_are_made_once_and_the_critic_learns_in_every_step():
    settings = make_settings("ppo", ppo={"steps": 3})
    networks = make_networks(settings)
    outcomes = build_method(settings, "train", SCORE).updates(
        networks, make_batch(), torch.Generator().manual_seed(0), 0.0
    )
    actor_losses, critic_losses = [], []
    for outcome in outcomes:
        actor_losses.append(outcome.measurements["actor_loss"].item())
        critic_losses.append(outcome.measurements["critic_loss"].item())
        with torch.no_grad():  # the critic alone moves
            for parameter, gradient in zip(
                networks.critic.parameters(), gradients(outcome.loss, networks.critic), strict=True
            ):
                parameter -= 0.01 * gradient
    assert actor_losses == pytest.approx([actor_losses[0]] * 3, abs=1e-10)
    assert critic_losses[0] > critic_losses[1] > critic_losses[2]
