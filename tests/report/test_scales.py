"""Ranges stay useful whatever the curves do; ticks are round; means are means."""

import math

import pytest

from seqcritic.report.comparison import Curve, Point
from seqcritic.report.scales import (
    Range,
    compute_range,
    describe_outside,
    group_series,
    interpolate,
    list_outside,
    mean_points,
    nice_ticks,
    score_range,
)


def make_curve(label: str, scores: list[float], seed: int = 0, spacing: float = 100.0) -> Curve:
    return Curve(label, seed, tuple(Point(spacing * i, i, score) for i, score in enumerate(scores)))


def test_early_spike_is_left_out_but_ends_are_not() -> None:
    settled = [45 - 0.1 * index for index in range(40)]
    series = group_series([make_curve("a", [300.0, 250.0, *settled]), make_curve("b", [*settled, 60.0])])
    drawn = score_range(series)
    assert drawn.high < 65
    assert drawn.contains(60.0)
    assert drawn.contains(min(settled))
    assert list_outside(series, drawn) == (300.0, 250.0)


def test_ordinary_learning_curve_is_drawn_whole() -> None:
    scores = [40 + 50 * math.exp(-index / 8) for index in range(50)]
    series = group_series([make_curve("a", scores)])
    assert list_outside(series, score_range(series)) == ()


@pytest.mark.parametrize("scores", [[42.0], [42.0, 42.0, 42.0], [0.0, 0.0], [-3.0], [1e9, 1e9]])
def test_equal_values_have_room(scores: list[float]) -> None:
    series = group_series([make_curve("a", scores)])
    drawn = score_range(series)
    assert drawn.low <= scores[0] < drawn.high
    assert drawn.high - drawn.low < 0.2 * abs(scores[0]) + 2
    assert compute_range(series).high > compute_range(series).low


def test_scores_that_cannot_be_negative_have_no_negative_axis() -> None:
    assert score_range(group_series([make_curve("a", [0.0, 10.0, 20.0])])).low == 0
    assert score_range(group_series([make_curve("a", [-1.0, 10.0])])).low < -1


def test_nothing_to_draw() -> None:
    nan = Curve("a", 0, (Point(1.0, 1, math.nan), Point(math.inf, 2, 3.0)))
    assert group_series([nan, Curve("b", 0, ())]) == ()
    assert score_range(()) == Range(0, 1)
    assert compute_range(()) == Range(0, 1)


def test_compute_starts_at_zero_unless_far_from_it() -> None:
    near = Curve("a", 0, (Point(10, 1, 1.0), Point(100, 2, 1.0)))
    far = Curve("a", 0, (Point(90, 1, 1.0), Point(100, 2, 1.0)))
    assert compute_range(group_series([near])) == Range(0, 100)
    assert compute_range(group_series([far])) == Range(90, 100)


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (0, 100, 5, (0, 20, 40, 60, 80, 100)),
        (37.8, 53.9, 6, (38, 40, 42, 44, 46, 48, 50, 52)),
        (0, 1, 4, (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (0, 81_600, 5, (0, 20_000, 40_000, 60_000, 80_000)),
        (-3, 1, 4, (-3, -2, -1, 0, 1)),
    ],
)
def test_nice_ticks(low: float, high: float, count: int, expected: tuple[float, ...]) -> None:
    assert nice_ticks(Range(low, high), count) == pytest.approx(expected)


def test_mean_over_seeds_with_different_points() -> None:
    one = Curve("a", 0, (Point(0, 0, 10.0), Point(100, 10, 20.0), Point(200, 20, 30.0)))
    two = Curve("a", 1, (Point(50, 5, 1.0), Point(150, 15, 3.0)))
    assert mean_points([one, two]) == (Point(50, 5, 8.0), Point(100, 10, 11.0), Point(150, 15, 14.0))


def test_seeds_without_common_compute_have_no_mean() -> None:
    series = group_series([Curve("a", 0, (Point(0, 0, 1.0),)), Curve("a", 1, (Point(5, 1, 2.0), Point(6, 2, 2.0)))])
    assert series[0].mean == ()
    assert len(series[0].main) == 2


def test_interpolation_at_and_between_points() -> None:
    points = (Point(0, 0, 10.0), Point(100, 10, 20.0))
    assert interpolate(points, 0) == points[0]
    assert interpolate(points, 25) == Point(25, 2, 12.5)
    assert interpolate(points, 100) == points[1]


def test_order_decides_who_comes_first() -> None:
    curves = [make_curve("a", [1.0]), make_curve("b", [2.0])]
    assert [one.label for one in group_series(curves, ["c", "b"])] == ["b", "a"]


def test_what_is_left_out_is_described() -> None:
    assert describe_outside(()) == ""
    assert describe_outside((310.5,)) == "1 point, at 310.50, lies beyond the drawn range."
    assert describe_outside((310.5, 90.0)) == "2 points, from 90.00 to 310.50, lie beyond the drawn range."
