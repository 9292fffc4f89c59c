"""Medians, ratios and their spread, and the order of alternating runs."""

from __future__ import annotations

import pytest

from side_by_side.figures import Timing, alternate, better, quartiles, ratio


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_pairs():
    found = ratio([2.0, 9.0, 4.0], [1.0, 3.0, 1.0])
    assert found.value == pytest.approx(4.0)
    assert (found.low, found.high) == (pytest.approx(2.5), pytest.approx(3.5))  # quartiles of 2, 3, 4


def test_one_slow_round_does_not_move_the_ratio():
    assert ratio([3.0, 3.0, 300.0], [1.0, 1.0, 1.0]).value == pytest.approx(3.0)


def test_series_of_different_length_are_refused():
    with pytest.raises(ValueError):
        ratio([1.0, 2.0], [1.0])


def test_one_value_is_its_own_quartiles():
    assert quartiles([7.0]) == (7.0, 7.0)


def test_the_better_side_has_the_lower_median():
    assert better({"slow": [1.0, 5.0, 5.0], "fast": [4.0, 4.0, 90.0]}) == "fast"


def test_sides_run_in_turns():
    order: list[str] = []

    def side(name: str) -> Timing:
        order.append(name)
        return Timing(cpu=len(order), wall=0.0)

    times = alternate({"ours": lambda: side("ours"), "peer": lambda: side("peer")}, rounds=2)
    assert order == ["ours", "peer", "ours", "peer"]
    assert [timing.cpu for timing in times["peer"]] == [2, 4]
