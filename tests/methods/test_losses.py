"""Hand-computed numbers for the pure functions."""

from __future__ import annotations

import pytest
import torch

from seqcritic.methods import losses

MASK = torch.tensor([[True, True, True], [True, True, False]])


def test_returns_to_go():
    rewards = torch.tensor([[1.0, -1.0, 2.0], [0.5, 0.25, 9.0]])
    assert losses.returns_to_go(rewards, MASK).tolist() == [[2.0, 1.0, 2.0], [0.75, 0.25, 0.0]]


def test_temporal_difference_targets_do_not_bootstrap_at_the_last_token():
    rewards = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    state_values = torch.tensor([[9.0, 10.0, 20.0], [9.0, 30.0, 99.0]])
    targets = losses.temporal_difference_targets(rewards, state_values, MASK)
    assert targets[0].tolist() == [11.0, 21.0, 1.0]
    assert targets[1, :2].tolist() == [31.0, 1.0]


def test_variance_penalty_is_a_sum_over_the_vocabulary():
    values = torch.tensor([[[1.0, 2.0, 6.0]]])
    assert losses.variance_penalty(values).tolist() == [[4.0 + 1.0 + 9.0]]


def test_critic_loss():
    values = torch.tensor([[[1.0, 3.0], [0.0, 2.0]]])
    tokens = torch.tensor([[1, 0]])
    targets = torch.tensor([[2.0, -2.0]])
    mask = torch.tensor([[True, True]])
    assert losses.critic_loss(values, tokens, targets, mask, 0.0).item() == pytest.approx(1 + 4)
    assert losses.critic_loss(values, tokens, targets, mask, 0.5).item() == pytest.approx(5 + 0.5 * (2 + 2))


def test_actor_critic_loss_sums_tokens_and_averages_sequences():
    probabilities = torch.tensor([[[0.25, 0.75]], [[0.5, 0.5]]])
    values = torch.tensor([[[4.0, 8.0]], [[2.0, 0.0]]])
    mask = torch.tensor([[True], [True]])
    assert losses.actor_critic_loss(probabilities, values, mask).item() == pytest.approx(-(7.0 + 1.0) / 2)


def test_reinforce_loss():
    token_log_probabilities = torch.tensor([[-1.0, -2.0]])
    returns, baselines = torch.tensor([[3.0, 1.0]]), torch.tensor([[1.0, 2.0]])
    loss = losses.reinforce_loss(token_log_probabilities, returns, baselines, torch.tensor([[True, True]]))
    assert loss.item() == pytest.approx(-(-1.0 * 2 + -2.0 * -1))


def test_likelihood_loss_ignores_padding():
    log_probabilities = torch.log(torch.tensor([[[0.5, 0.5], [0.25, 0.75]]]))
    loss = losses.likelihood_loss(log_probabilities, torch.tensor([[0, 1]]), torch.tensor([[True, False]]))
    assert loss.item() == pytest.approx(-torch.log(torch.tensor(0.5)).item())
