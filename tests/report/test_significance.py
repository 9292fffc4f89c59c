"""Holm's correction and the test over seeds, against figures of textbooks and by hand."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from seqcritic.report.comparison import Comparison
from seqcritic.report.significance import correct_by_holm, p_over_seeds


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04, and the last may not be below 0.06.
    assert correct_by_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_by_holm([0.04]) == [0.04]
    assert correct_by_holm([0.6, 0.7]) == [1.0, 1.0]
    assert correct_by_holm([]) == []


@pytest.mark.parametrize(
    ("t", "num_seeds", "p_value"),
    [(12.706, 2, 0.05), (4.303, 3, 0.05), (9.925, 3, 0.01), (2.776, 5, 0.05), (2.045, 30, 0.05), (31.599, 3, 0.001)],
)
def test_the_test_over_seeds_has_the_quantiles_of_tables(t: float, num_seeds: int, p_value: float) -> None:
    """Differences with mean t · s / √n, for quantiles of Student's distribution with n − 1 degrees of freedom."""
    deviations = [(-1.0) ** index for index in range(num_seeds)]
    deviations = [each - sum(deviations) / num_seeds for each in deviations]
    spread = math.sqrt(sum(each**2 for each in deviations) / (num_seeds - 1))
    ours = [each + t * spread / math.sqrt(num_seeds) for each in deviations]
    assert p_over_seeds(ours, [0.0] * num_seeds, paired=True) == pytest.approx(p_value, rel=2e-3)


def test_seeds_that_are_no_pairs_are_tested_by_welch() -> None:
    # Means 10 and 12, variances 1 and 4 of three: t = 2 / √(5/3), ν = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 50/17.
    found = p_over_seeds([9.0, 10.0, 11.0], [10.0, 12.0, 14.0], paired=False)
    assert found == pytest.approx(0.2212, abs=2e-3)
    assert p_over_seeds([9.0, 10.0, 11.0], [12.0], paired=False) is None


def test_one_seed_tells_nothing_and_seeds_without_spread_all() -> None:
    assert p_over_seeds([1.0], [2.0], paired=True) is None
    assert p_over_seeds([1.0, 2.0], [2.0, 3.0], paired=True) == 0.0
    assert p_over_seeds([1.0, 2.0], [1.0, 2.0], paired=True) == 1.0
    assert p_over_seeds([math.nan, 2.0], [1.0, 2.0], paired=True) is None


def test_a_row_s_p_value_stands_few_seeds_and_many_tests(make_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_comparison(3)
    shifted = replace(comparison.rows[1], seed_scores=(40.0, 43.5, 37.43))
    comparison = replace(comparison, rows=(comparison.rows[0], shifted, *comparison.rows[2:]))
    by_seed = p_over_seeds(shifted.seed_scores, comparison.rows[0].seed_scores, paired=True)
    assert by_seed is not None
    assert by_seed > 0.1 > 0.004 == shifted.p_value
    # Of three tests: 0.0004 · 3, then by_seed · 2 and 0.214 · 1 in the order of their size.
    small, large = sorted((by_seed, 0.214))
    second = min(1.0, 2 * small)
    expected = {small: second, large: max(second, large)}
    found = [comparison.p_value(row) for row in comparison.rows]
    assert found == [None, pytest.approx(expected[by_seed]), pytest.approx(0.0012), pytest.approx(expected[0.214])]
    assert comparison.num_tests == 3


def test_json_tells_the_choice_the_corrected_p_values_and_the_spread(
    make_beam_comparison: Callable[[int], Comparison],
) -> None:
    comparison = make_beam_comparison(3)
    content = json.loads(json.dumps(comparison.to_dict()))
    assert content["chosen_on_validation"] == ["actor-critic+likelihood"]
    for row, entry in zip(comparison.rows, content["rows"], strict=True):
        assert entry["valid_score"] == comparison.valid_score(row)
        assert entry["p_value_holm"] == comparison.p_value(row)
        assert entry["seed_deviation"] == pytest.approx(0.3)
        assert entry["seed_range"] == pytest.approx([row.score - 0.3, row.score + 0.3])
        assert entry["beam"]["seed_range"] == pytest.approx([row.score - 0.5, row.score + 0.1])
    assert content["rows"][1]["beam"]["p_value_holm"] == pytest.approx(3 * 0.031)
    assert Comparison.from_dict(content) == comparison
