"""Our losses beside those of two libraries that know nothing of ours; skipped where they are not installed.

    pip install -c constraints.txt -e '.[dev,oracles]'

rlax: its functions take one sequence of T steps without a mask and average over steps, ours sum over the counted ones.
pydrobert-pytorch: edit distances of prefixes, optimal completions, and the expected error rate of a list.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.score import Scorable
from seqcritic.methods import losses
from seqcritic.methods.minimum_risk import risk
from seqcritic.methods.optimal_completion import optimal_values
from seqcritic.scores.edit_distance import EditDistanceScore

STEPS, TOKENS = 6, 5
SPECIAL = SpecialTokens(end=(0,), padding=0)


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def chosen_tokens() -> Tensor:
    return torch.randint(TOKENS, (1, STEPS), generator=torch.Generator().manual_seed(4))


def same(ours: Tensor, theirs: Any) -> bool:
    return torch.allclose(ours.detach(), torch.tensor(theirs.tolist()), rtol=1e-5, atol=1e-6)


# rlax


def test_actor_critic_is_the_q_based_policy_gradient():
    """The losses differ by the state value, a constant for them; the gradients are the same."""
    rlax, jax = pytest.importorskip("rlax"), pytest.importorskip("jax")
    logits, values = draw(1, STEPS, TOKENS, seed=1).requires_grad_(), draw(1, STEPS, TOKENS, seed=2)
    mask = torch.ones(1, STEPS, dtype=torch.bool)
    losses.actor_critic_loss(torch.softmax(logits, 2), values, mask).backward()
    theirs = jax.grad(rlax.qpg_loss)(jax.numpy.array(logits[0].tolist()), jax.numpy.array(values[0].tolist()))
    assert same(logits.grad[0] / STEPS, theirs)
    assert logits.grad.abs().max() > 0.01


def test_reinforce_is_the_policy_gradient_with_masked_tokens_weighed_by_nothing():
    rlax, jax = pytest.importorskip("rlax"), pytest.importorskip("jax")
    array = jax.numpy.array
    logits, tokens = draw(1, STEPS, TOKENS, seed=1).requires_grad_(), chosen_tokens()
    returns, baselines = draw(1, STEPS, seed=2), draw(1, STEPS, seed=3)
    mask = torch.arange(STEPS)[None] < STEPS - 2
    taken = losses.gather_chosen(torch.log_softmax(logits, 2), tokens)
    loss = losses.reinforce_loss(taken, returns, baselines, mask)
    loss.backward()
    given = (array(tokens[0].tolist()), array((returns - baselines)[0].tolist()), array(mask[0].float().tolist()))
    value, gradient = jax.value_and_grad(rlax.policy_gradient_loss)(array(logits[0].tolist()), *given)
    assert same(loss / STEPS, value)
    assert same(logits.grad[0] / STEPS, gradient)


def test_targets_are_those_of_expected_sarsa():
    """Nothing follows the last counted token: there the discount is 0."""
    rlax, jax = pytest.importorskip("rlax"), pytest.importorskip("jax")
    array = jax.numpy.array
    values, targets_of = draw(1, STEPS, TOKENS, seed=1), draw(1, STEPS, TOKENS, seed=2)
    probabilities, rewards = torch.softmax(draw(1, STEPS, TOKENS, seed=3), 2), draw(1, STEPS, seed=5)
    tokens, last = chosen_tokens(), STEPS - 2
    mask = torch.arange(STEPS)[None] <= last
    state_values = losses.expected_values(probabilities, targets_of)
    targets = losses.temporal_difference_targets(rewards, state_values, mask)
    errors = (targets - losses.gather_chosen(values, tokens))[0]
    for step in range(last + 1):
        following = min(step + 1, last)
        theirs = rlax.expected_sarsa(
            array(values[0, step].tolist()),
            int(tokens[0, step]),
            float(rewards[0, step]),
            float(step < last),
            array(targets_of[0, following].tolist()),
            array(probabilities[0, following].tolist()),
        )
        assert same(errors[step], theirs)


# pydrobert-pytorch


def pairs_of_sequences() -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """All predictions of up to three of three tokens, each with each of some references."""
    predictions = [each for length in range(4) for each in itertools.product((1, 2, 3), repeat=length)]
    references = [(1,), (1, 2), (2, 2, 1), (1, 3, 2), (3, 3, 1, 2)]
    both = list(itertools.product(predictions, references))
    return [one for one, _ in both], [other for _, other in both]


def padded(sequences: list[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    width = max(len(each) for each in sequences) + 1
    tokens = torch.tensor([[*each, *[0] * (width - len(each))] for each in sequences])
    return tokens, torch.tensor([len(each) for each in sequences])


def scorable() -> Scorable:
    predictions, references = pairs_of_sequences()
    return Scorable.of(*padded(predictions), *padded(references))


@pytest.mark.parametrize("normalise", [False, True])
def test_scores_of_prefixes_are_their_error_rates(normalise: bool):
    util = pytest.importorskip("pydrobert.torch.util")
    evaluated = scorable()
    found = EditDistanceScore(normalise=normalise).prefix_scores(evaluated)  # [B, T + 1]
    rates = util.prefix_error_rates(
        evaluated.references[:, 0],
        evaluated.predictions,
        eos=0,
        include_eos=False,
        norm=normalise,
        batch_first=True,
        warn=False,
    )
    counted = torch.arange(found.shape[1]) <= evaluated.lengths[:, None]
    # Ours are scores, larger for better, and nothing has the score 0.
    expected = rates[:, :1] - rates
    assert torch.allclose(found[counted].float(), expected[counted], atol=1e-6)


def test_the_best_next_tokens_are_the_optimal_completions():
    util = pytest.importorskip("pydrobert.torch.util")
    evaluated = scorable()
    predictions, references = evaluated.predictions, evaluated.references[:, 0]
    optimals = util.optimal_completion(references, predictions, eos=0, include_eos=True, batch_first=True, warn=False)
    mask = torch.arange(predictions.shape[1]) <= evaluated.lengths[:, None]
    values = optimal_values(EditDistanceScore(normalise=False), evaluated, mask, 4, SPECIAL).padded()  # [B, T, V]
    for row, step in mask.nonzero().tolist():
        best = values[row, step] == values[row, step].max()
        theirs = {token for token in optimals[row, step].tolist() if token >= 0}
        assert set(best.nonzero().flatten().tolist()) == theirs, (predictions[row], references[row], step)


def test_the_risk_of_a_list_is_its_expected_error_rate():
    layers = pytest.importorskip("pydrobert.torch.layers")
    lists = [(1, 2), (2,), (1, 3, 2), ()]
    reference = (1, 2)
    predictions, lengths = padded(lists)
    references, reference_lengths = padded([reference] * len(lists))
    scores = EditDistanceScore(normalise=True).score(Scorable.of(predictions, lengths, references, reference_lengths))
    ours, theirs = (draw(1, len(lists), seed=7).requires_grad_() for _ in range(2))
    loss = risk(ours, scores[None].float(), torch.zeros(1, len(lists), dtype=torch.bool), 1.0)
    loss.backward()
    oracle = layers.MinimumErrorRateLoss(eos=0, include_eos=False, sub_avg=False, batch_first=True)
    wanted = oracle(theirs, references[:1], predictions[None], warn=False)
    wanted.backward()
    # Theirs is the mean over the K candidates of a sum of K summands; a score is 1 less than its error rate is above 0.
    assert torch.allclose(loss + 1, wanted * len(lists), atol=1e-6)
    assert torch.allclose(ours.grad, theirs.grad * len(lists), atol=1e-6)
