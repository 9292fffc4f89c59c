"""Intervals and tests on made-up errors with known answers, and on cases small enough to enumerate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from seqcritic.evaluation import bootstrap
from seqcritic.evaluation.bootstrap import interval, paired_p_value
from seqcritic.report.significance import p_over_seeds
from seqcritic.scores.edit_distance import EditDistanceScore

METRIC = EditDistanceScore()


def made_up_errors(rate: float, seed: int, size: int = 2000) -> np.ndarray:
    """Return the statistics of sentences of ten characters with independent errors."""
    errors = np.random.default_rng(seed).binomial(10, rate, size=size)
    return sentences(errors)


def sentences(errors: np.ndarray | list[int]) -> np.ndarray:
    """Return the statistics of sentences of ten characters with so many errors."""
    return np.stack([errors, np.full(len(errors), 10)], axis=1).astype(float)


def test_the_interval_has_the_width_of_the_normal_approximation():
    statistics = made_up_errors(0.4, seed=0)
    low, high = interval([statistics], METRIC)
    center, deviation = 10 * statistics[:, 0].mean(), 10 * statistics[:, 0].std() / np.sqrt(2000)
    assert low == pytest.approx(center - 1.96 * deviation, abs=0.1)
    assert high == pytest.approx(center + 1.96 * deviation, abs=0.1)


def test_the_interval_of_the_mean_of_independent_runs_is_narrower():
    one, other = made_up_errors(0.4, seed=0), made_up_errors(0.4, seed=1)
    alone, both = interval([one], METRIC), interval([one, other], METRIC)
    assert both[1] - both[0] == pytest.approx((alone[1] - alone[0]) / np.sqrt(2), rel=0.1)


def test_a_real_difference_is_significant_in_both_directions_and_none_is_not():
    worse, better = [made_up_errors(0.40, seed=1)], [made_up_errors(0.37, seed=2)]
    assert paired_p_value(better, worse, METRIC) < 0.001
    assert paired_p_value(worse, better, METRIC) < 0.001
    assert paired_p_value(worse, worse, METRIC) == 1.0


def test_p_values_of_equal_methods_are_spread_evenly():
    """Two methods of the same rate must come out below 0.2 in about a fifth of the cases."""
    p_values = [
        paired_p_value([made_up_errors(0.4, seed)], [made_up_errors(0.4, seed + 1000)], METRIC) for seed in range(16)
    ]
    assert 1 <= sum(p_value < 0.2 for p_value in p_values) <= 9


# Errors of two methods in three sentences, a row for each of two seeds: the first seed gains, the second loses less.
OURS = ([4, 1, 3], [3, 2, 2])
THEIRS = ([5, 4, 3], [2, 1, 3])


def enumerated_p_value(shared_seeds: bool) -> float:
    """Return twice the share of all draws of sentences and seeds in which the mean difference is not a gain."""
    ours, theirs = np.array(OURS), np.array(THEIRS)
    against, total = 0, 0
    pairs = list(itertools.product(range(2), repeat=2))
    for drawn in itertools.product(range(3), repeat=3):
        for own in pairs:
            for other in [own] if shared_seeds else pairs:
                difference = ours[list(own)][:, list(drawn)].sum() - theirs[list(other)][:, list(drawn)].sum()
                against += difference >= 0
                total += 1
    return 2 * against / total


@pytest.mark.parametrize("shared_seeds", [True, False])
def test_seeds_and_sentences_are_both_drawn(shared_seeds: bool):
    found = paired_p_value(
        [sentences(errors) for errors in OURS], [sentences(errors) for errors in THEIRS], METRIC, shared_seeds
    )
    expected = min(1.0, enumerated_p_value(shared_seeds))
    assert found == pytest.approx(expected, abs=0.04)  # four standard errors of 10,000 resamples
    over_sentences = 2 * np.mean(
        [
            np.array(OURS)[:, list(drawn)].sum() >= np.array(THEIRS)[:, list(drawn)].sum()
            for drawn in itertools.product(range(3), repeat=3)
        ]
    )
    assert abs(expected - over_sentences) > 0.1, "sentences alone would give another p"


def test_pairs_of_seeds_are_told_apart_from_seeds_that_are_none():
    assert abs(enumerated_p_value(shared_seeds=True) - enumerated_p_value(shared_seeds=False)) > 0.1


def test_methods_that_differ_by_their_seeds_alone_are_rarely_called_different(monkeypatch: pytest.MonkeyPatch):
    """Between seeds errors vary much more than between samples of sentences; p < 0.05 must stay near one in twenty.

    Sentences alone make every difference of seeds one of methods. Three seeds drawn with replacement still do in the
    quarter of cases in which all three differ in one direction, hence the t-test.
    """
    monkeypatch.setattr(bootstrap, "NUM_RESAMPLES", 300)
    randomness = np.random.default_rng(0)
    num_trials, false_alarms = 150, {"sentences": 0, "both": 0, "shown": 0}
    for _ in range(num_trials):
        ours, theirs = (
            [sentences(randomness.binomial(10, rate, 400)) for rate in randomness.normal(0.4, 0.04, 3)]
            for _ in range(2)
        )
        both = paired_p_value(ours, theirs, METRIC)
        scores = [[float(METRIC.of_totals(run.sum(axis=0))) for run in runs] for runs in (ours, theirs)]
        by_seed = p_over_seeds(*scores, paired=True)
        assert by_seed is not None
        sentences_alone = paired_p_value([np.concatenate(ours)], [np.concatenate(theirs)], METRIC)
        for name, p_value in (("sentences", sentences_alone), ("both", both), ("shown", max(both, by_seed))):
            false_alarms[name] += p_value < 0.05
    shares = {name: count / num_trials for name, count in false_alarms.items()}
    assert shares["sentences"] > 0.4
    assert 0.1 < shares["both"] < 0.4
    assert shares["shown"] < 0.1


def test_a_real_difference_is_found_in_spite_of_the_seeds():
    ours = [made_up_errors(rate, seed) for seed, rate in enumerate((0.35, 0.36, 0.34))]
    theirs = [made_up_errors(rate, 10 + seed) for seed, rate in enumerate((0.40, 0.41, 0.39))]
    assert paired_p_value(ours, theirs, METRIC) < 0.001
    mixed = [made_up_errors(rate, seed) for seed, rate in enumerate((0.33, 0.43, 0.38))]
    assert paired_p_value(mixed, theirs, METRIC) > 0.05, "better in the mean, not in every seed"
