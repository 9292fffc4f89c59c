"""Sampled bias and variance against exact enumeration, in float64, on a world of fifteen sequences."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from seqcritic.analysis.estimators import ESTIMATORS, UNBIASED, draw_gradients, fit_baseline
from seqcritic.analysis.measure import Measurement, measure
from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.batch import Batch
from seqcritic.methods import losses
from seqcritic.models.baseline import LinearBaseline
from seqcritic.report.diagnosis import SAMPLES, EstimatorRow, Figure
from seqcritic.testing.critics import wrong_values
from seqcritic.testing.exact_moments import ExactMoments, make_baseline, make_subject
from seqcritic.testing.worlds import NUM_STEPS, make_actor, make_batch, make_world

DRAWS, COPIES = 320, 24
WANTED = 0.05


def within(figure: Figure, exact: float, errors: float = 4.0) -> bool:
    """Whether a figure is as near to the exact one as its stated error says."""
    assert math.isfinite(figure.error)
    return abs(figure.value - exact) <= errors * figure.error + 1e-12


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let samples end where the world does."""
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=NUM_STEPS - 2))


@pytest.fixture(scope="module", params=["exact", "wrong"])
def diagnosis(request: pytest.FixtureRequest) -> tuple[str, ExactMoments, Measurement]:
    actor = make_actor()
    world = make_world(actor)
    table = world.exact_values() if request.param == "exact" else wrong_values(world)
    subject = make_subject(world, table)
    generator = torch.Generator().manual_seed(5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Actor, "limits", LengthLimits(beyond_reference=NUM_STEPS - 2))
        measured = measure(subject, make_baseline(), [make_batch().repeat(COPIES)], generator, DRAWS, 0.0)
    return request.param, ExactMoments(world, table, make_baseline(), COPIES), measured


def row_of(measured: Measurement, name: str) -> EstimatorRow:
    return next(row for row in measured.estimators if row.name == name)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_variance_bias_and_cosine_are_the_exact_ones(name: str, diagnosis: tuple[str, ExactMoments, Measurement]):
    _, exact, measured = diagnosis
    row = row_of(measured, name)
    assert measured.draws == DRAWS
    assert within(row.variance, exact.variances[name])
    assert row.variance.error < 0.2 * row.variance.value
    assert within(row.bias_square, exact.bias_squares[name])
    assert within(row.cosine, exact.cosine(name))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_only_actor_critic_with_wrong_values_is_biased(name: str, diagnosis: tuple[str, ExactMoments, Measurement]):
    kind, exact, measured = diagnosis
    is_biased = kind == "wrong" and name == "actor-critic"
    assert (exact.bias_squares[name] > 1e-12) == is_biased
    assert row_of(measured, name).is_biased == is_biased
    assert (name in UNBIASED) == row_of(measured, name).unbiased
    low, high = row_of(measured, name).bias_bounds
    assert low <= math.sqrt(exact.bias_squares[name]) + 1e-9
    assert math.sqrt(exact.bias_squares[name]) <= high + 1e-9


def test_the_true_gradient_is_found_with_the_stated_error(diagnosis: tuple[str, ExactMoments, Measurement]):
    _, exact, measured = diagnosis
    assert measured.truth == min(UNBIASED, key=lambda name: exact.variances[name])
    assert measured.truth == "corrected"
    assert measured.gradient_norm == pytest.approx(math.sqrt(exact.square), rel=5 * measured.gradient_error)
    assert measured.gradient_error == pytest.approx(math.sqrt(exact.variances[measured.truth] / DRAWS), rel=0.2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_errors_and_samples_follow_from_bias_and_variance(name: str, diagnosis: tuple[str, ExactMoments, Measurement]):
    _, exact, measured = diagnosis
    row = row_of(measured, name)
    expected = [exact.bias_squares[name] + exact.variances[name] / samples for samples in SAMPLES]
    assert row.errors == pytest.approx(expected, rel=0.25)
    one = exact.bias_squares["actor-critic"] + exact.variances["actor-critic"]
    if name != "actor-critic":
        assert within(row.samples, exact.variances[name] / one)
    alignments = [
        exact.cosine(name) / math.sqrt(1 + exact.variances[name] * exact.square / samples / mean_square(exact, name))
        for samples in SAMPLES
    ]
    assert row.alignments == pytest.approx(alignments, rel=0.1)


def mean_square(exact: ExactMoments, name: str) -> float:
    return float(exact.means[name].square().sum())


def test_samples_of_the_same_alignment_are_those_where_the_noise_is_equally_long(
    diagnosis: tuple[str, ExactMoments, Measurement],
):
    _, _, measured = diagnosis
    aim = row_of(measured, "actor-critic").alignments[0]
    row = row_of(measured, "reinforce")
    noise = row.variance.value / row.aligned_samples.value
    assert 1 / math.sqrt(1 + noise) == pytest.approx(aim)


def test_batches_of_unequal_size_count_by_their_examples():
    actor = make_actor()
    world = make_world(actor)
    subject = make_subject(world, wrong_values(world))
    exact = ExactMoments(world, wrong_values(world), make_baseline(), 8)
    batches = [make_batch().repeat(7), make_batch()]
    measured = measure(subject, make_baseline(), batches, torch.Generator().manual_seed(6), 96, 0.0)
    for name in ESTIMATORS:
        assert within(row_of(measured, name).variance, exact.variances[name])


def test_draws_end_when_the_truth_is_known_well_enough():
    actor = make_actor()
    world = make_world(actor)
    subject = make_subject(world, world.exact_values())
    seen: list[tuple[int, float]] = []
    measured = measure(
        subject,
        make_baseline(),
        [make_batch().repeat(30)],
        torch.Generator().manual_seed(7),
        10_000,
        WANTED,
        lambda draws, error: seen.append((draws, error)),
    )
    assert 64 < measured.draws < 500
    assert measured.draws % 16 == 0
    assert seen[-1] == (measured.draws, measured.gradient_error)
    assert measured.gradient_error <= WANTED
    assert all(error > WANTED for _, error in seen[:-1])


def test_the_fitted_baseline_is_the_least_squares_fit():
    actor = make_actor()
    world = make_world(actor)
    subject = make_subject(world, world.exact_values())
    batch: Batch = make_batch().repeat(600)
    fitted = fit_baseline(subject, [batch], torch.Generator().manual_seed(8))
    returns = losses.returns_to_go(world.rewards, world.mask)
    weights = (world.sequence_probabilities.detach()[:, None] * world.mask)[world.mask]

    def loss(baselines: Tensor) -> float:
        return float((weights * (baselines.detach() - returns)[world.mask].square()).sum())

    constant = float((weights * returns[world.mask]).sum() / weights.sum())
    ours = loss(fitted(world.states))
    design = torch.cat([world.states.detach(), torch.ones_like(world.states[:, :, :1])], 2)[world.mask]
    root = weights.sqrt()[:, None]
    best = torch.linalg.lstsq(root * design, root * returns[world.mask][:, None], driver="gelsd").solution[:, 0]
    exact = LinearBaseline(5).double()
    with torch.no_grad():
        exact.linear.weight[0], exact.linear.bias[0] = best[:-1], best[-1]
    lowest = loss(exact(world.states))
    assert lowest <= ours <= lowest + 0.1 * (loss(torch.full_like(returns, constant)) - lowest)


def test_a_draw_is_the_same_for_the_same_generator():
    actor = make_actor()
    world = make_world(actor)
    subject = make_subject(world, world.exact_values())
    first, again, other = (
        draw_gradients(subject, make_baseline(), [make_batch().repeat(2)], torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert all(torch.equal(first[name], again[name]) for name in ESTIMATORS)
    assert not torch.equal(first["reinforce"], other["reinforce"])
