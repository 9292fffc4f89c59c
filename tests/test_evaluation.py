"""Intervals and paired tests on made-up errors with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from seqcritic.evaluation import interval, paired_p_value, signature
from seqcritic.scores.edit_distance import CharacterErrorRate
from seqcritic.settings_io import load_recipe

METRIC = CharacterErrorRate()


def made_up_errors(rate: float, seed: int) -> np.ndarray:
    """Return the statistics of 2,000 sentences of ten characters with independent errors."""
    errors = np.random.default_rng(seed).binomial(10, rate, size=2000)
    return np.stack([errors, np.full(2000, 10)], axis=1).astype(float)


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


def test_the_signature_names_what_changes_the_figure():
    plain = signature(load_recipe("demo"), "test", 100)
    assert "split:test" in plain
    assert "sentences:100" in plain
    for override in ("data.noise=0.25", "data.length=12", "data.evaluation_seed=9", "score.capped=true"):
        assert signature(load_recipe("demo", [override]), "test", 100) != plain
