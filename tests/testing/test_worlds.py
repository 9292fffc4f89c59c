"""The worlds that are offered for tests of one's own: what they call exact is exact, and bias is told from none."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from foreign_actors import TWO_ENDS, GrowingActor, make_actor
from seqcritic.contracts.batch import Batch, pad
from seqcritic.methods import losses
from seqcritic.methods.optimal_completion import optimal_values
from seqcritic.methods.rollout import as_scorable
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.testing import (
    Draw,
    World,
    all_sequences,
    assert_unbiased,
    expected_gradients,
    largest_difference,
    make_batch,
    make_world,
)


@pytest.fixture(scope="module")
def world() -> World:
    return make_world()


def test_sequences_end_once_or_are_cut():
    assert len(all_sequences()) == 15
    assert all_sequences(2, 2, ends=(1,)) == [(0, 0), (0, 1), (1,)]
    assert all_sequences(3, 2, ends=(0, 2)) == [(0,), (1, 0), (1, 1), (1, 2), (2,)]


def test_all_that_any_actor_can_say_has_probability_one():
    tokens, mask = pad([[1, 2]], TWO_ENDS)
    world = make_world(make_actor(GrowingActor), batch=Batch(tokens, mask, tokens, mask), num_steps=2)
    assert len(world.sequences) == 2 + 6 * 8
    assert float(world.sequence_probabilities.detach().sum()) == pytest.approx(1, abs=1e-12)


def test_the_exact_gradient_is_the_slope_of_the_expected_return():
    """By central differences in one direction of the weights, which are moved in place: the world is its own."""
    world = make_world()
    weights = list(world.actor.parameters())
    generator = torch.Generator().manual_seed(3)
    direction = [torch.randn(weight.shape, dtype=weight.dtype, generator=generator) for weight in weights]
    slope = sum(float((a * b).sum()) for a, b in zip(world.exact_gradients(), direction, strict=True))

    def moved(size: float) -> float:
        with torch.no_grad():
            for weight, step in zip(weights, direction, strict=True):
                weight += size * step
            found = float(make_world(world.actor).expected_return)
            for weight, step in zip(weights, direction, strict=True):
                weight -= size * step
        return found

    assert slope == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-6)
    assert abs(slope) > 0.01


def test_state_values_are_the_expected_return_before_the_first_token(world: World):
    assert float(world.exact_state_values()[0, 0]) == pytest.approx(world.expected_return.item(), abs=1e-12)


def test_optimal_values_are_those_of_the_dynamic_programme(world: World):
    score, special = EditDistanceScore(normalise=False), world.actor.special
    many = world.batch.repeat(len(world.sequences))
    evaluated = as_scorable(score, special, world.tokens, world.mask, many)
    known = optimal_values(score, evaluated, world.mask, 3, special).rows  # up to a constant of each place
    found = world.optimal_values()[world.mask]
    assert torch.allclose(found - found[:, :1], (known - known[:, :1]).double())


def test_optimal_completions(world: World):
    assert world.optimal_completions() == [(1, 2, 0)]
    # The first token is wrong: one edit is lost, whether it stands for the reference's first or before it.
    assert world.optimal_completions((2,)) == [(2, 0), (2, 1, 2), (2, 2, 0)]


def test_another_score_and_reference():
    world = make_world(batch=make_batch((2,)), score=EditDistanceScore(normalise=True), shaping=False)
    assert world.optimal_completions() == [(2, 0)]
    assert float(world.rewards.max()) == 1
    assert bool(((world.rewards != 0).sum(1) <= 1).all()), "all falls on the last token"


def reinforce(draw: Draw) -> Tensor:
    returns = losses.returns_to_go(draw.rewards, draw.mask)
    return losses.reinforce_loss(draw.token_log_probabilities, returns, torch.zeros_like(returns), draw.mask)


def leave_one_out(draw: Draw) -> Tensor:
    others = draw.returns.sum() - draw.returns
    baseline = (others / (len(draw.returns) - 1))[:, None]
    return losses.reinforce_loss(draw.token_log_probabilities, draw.returns[:, None], baseline, draw.mask)


def mean_of_all(draw: Draw) -> Tensor:
    """The sample's own return is in its baseline: biased by the factor (M − 1) / M."""
    return losses.reinforce_loss(
        draw.token_log_probabilities, draw.returns[:, None], draw.returns.mean()[None, None], draw.mask
    )


@pytest.mark.parametrize(("estimator", "samples"), [(reinforce, 1), (reinforce, 2), (leave_one_out, 2)])
def test_estimators_without_bias_pass(world: World, estimator, samples: int):
    assert_unbiased(estimator, world, samples)


def test_a_biased_estimator_fails_with_its_bias(world: World):
    with pytest.raises(AssertionError, match=r"^the estimator is biased: by 0.5 of the length .*, cosine 1 "):
        assert_unbiased(mean_of_all, world, 2)
    half = [-0.5 * gradient for gradient in world.exact_gradients()]
    assert largest_difference(expected_gradients(mean_of_all, world, 2), half) < 1e-8


def test_what_is_no_number_is_no_proof(world: World):
    with pytest.raises(AssertionError, match="biased"):
        assert_unbiased(lambda draw: reinforce(draw) * torch.nan, world)


def test_no_test_framework_is_needed():
    code = "import sys, seqcritic.testing; assert 'pytest' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
