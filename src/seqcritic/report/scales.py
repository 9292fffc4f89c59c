"""From curves to axes: which range to draw, where the ticks go, and the mean over seeds."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqcritic.report.comparison import Curve, Point


@dataclass(frozen=True, slots=True)
class Series:
    """The curves of one method: one for each seed, and their mean where there are several seeds."""

    label: str
    seeds: tuple[Curve, ...]
    mean: tuple[Point, ...]

    @property
    def main(self) -> tuple[Point, ...]:
        """The points that stand for the method: the mean, or the longest curve where there is none."""
        return self.mean or max((curve.points for curve in self.seeds), key=len)


@dataclass(frozen=True, slots=True)
class Range:
    """The part of an axis that is drawn."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Say whether a value is drawn."""
        return self.low <= value <= self.high

    def clamp(self, value: float) -> float:
        """Move a value to the nearest one that is drawn."""
        return min(max(value, self.low), self.high)

    def fraction(self, value: float) -> float:
        """Say how far along the range a value lies: 0 at its low end, 1 at its high end."""
        return (value - self.low) / (self.high - self.low)


def group_series(curves: Iterable[Curve], order: Sequence[str] = ()) -> tuple[Series, ...]:
    """Gather curves by method, those named in `order` first; points that are not finite are left out."""
    # In the order of its keys: those named first, then as they come; labels without a curve fall out at the end.
    groups: dict[str, list[Curve]] = {label: [] for label in order}
    for curve in curves:
        points = [p for p in curve.points if math.isfinite(p.compute) and math.isfinite(p.score)]
        points.sort(key=lambda point: point.compute)
        if points:
            groups.setdefault(curve.label, []).append(Curve(curve.label, curve.seed, tuple(points)))
    return tuple(
        Series(label, tuple(seeds), mean_points(seeds) if len(seeds) > 1 else ())
        for label, seeds in groups.items()
        if seeds
    )


def mean_points(curves: Sequence[Curve]) -> tuple[Point, ...]:
    """Average curves over the stretch of compute they share, interpolating where their points differ."""
    low = max(curve.points[0].compute for curve in curves)
    high = min(curve.points[-1].compute for curve in curves)
    # Where any curve has a point, each is read: a mean over a changing set of seeds would jump.
    grid = sorted({point.compute for curve in curves for point in curve.points if low <= point.compute <= high})
    averages = []
    for compute in grid:
        points = [interpolate(curve.points, compute) for curve in curves]
        updates = round(sum(point.updates for point in points) / len(points))
        averages.append(Point(compute, updates, sum(point.score for point in points) / len(points)))
    return tuple(averages)


def interpolate(points: Sequence[Point], compute: float) -> Point:
    """Read a curve, whose points are sorted, at some compute between its ends."""
    right = bisect_right(points, compute, key=lambda point: point.compute)
    before = points[max(right - 1, 0)]
    if right in (0, len(points)) or before.compute == compute:
        return before
    after = points[right]
    fraction = (compute - before.compute) / (after.compute - before.compute)
    updates = round(before.updates + fraction * (after.updates - before.updates))
    return Point(compute, updates, before.score + fraction * (after.score - before.score))


def compute_range(series: Sequence[Series]) -> Range:
    """Choose the drawn range of compute, from zero on unless that would waste much of the axis."""
    values = [point.compute for one in series for curve in one.seeds for point in curve.points]
    if not values:
        return Range(0, 1)
    low, high = min(values), max(values)
    if low == high or 0 <= low <= 0.3 * high:
        low = min(low, 0)
    return Range(low, high if high > low else low + 1)


def score_range(series: Sequence[Series]) -> Range:
    """Choose the drawn range of scores: all of them, unless a few far ones would flatten the rest.

    Far is more than twice the interquartile range beyond the quartiles. Where every curve ends is
    always drawn, for that is its result.
    """
    curves = [curve for one in series for curve in one.seeds]
    values = sorted(point.score for curve in curves for point in curve.points)
    if not values:
        return Range(0, 1)
    ends = [curve.points[-1].score for curve in curves]
    lower, upper = _quantile(values, 0.25), _quantile(values, 0.75)
    reach = 2 * (upper - lower)
    near = [value for value in values if lower - reach <= value <= upper + reach] + ends
    low, high = min(near), max(near)
    # Far ones that would at most halve the height of the rest are drawn with it.
    if values[-1] - values[0] <= 2 * (high - low):
        low, high = values[0], values[-1]
    # Equal values need some room to be drawn at all.
    margin = 0.05 * (high - low) or max(0.05 * abs(high), 0.5)
    # A score that cannot be negative should not be drawn as if it could.
    return Range(max(low - margin, 0.0) if values[0] >= 0 else low - margin, high + margin)


def value_range(values: Sequence[float]) -> Range:
    """Choose the drawn range of values: all of them, and zero."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return Range(min(low, 0.0), max(high, 0.0) if max(high, 0.0) > min(low, 0.0) else 1.0)


def list_outside(series: Sequence[Series], scores: Range) -> tuple[float, ...]:
    """List the scores that the drawn range leaves out."""
    values = (point.score for one in series for curve in one.seeds for point in curve.points)
    return tuple(value for value in values if not scores.contains(value))


def describe_outside(outside: Sequence[float]) -> str:
    """Say what the drawn range leaves out, or nothing where it leaves out nothing."""
    if not outside:
        return ""
    if len(outside) == 1:
        return f"1 point, at {outside[0]:.2f}, lies beyond the drawn range."
    span = f"from {min(outside):.2f} to {max(outside):.2f}"
    return f"{len(outside)} points, {span}, lie beyond the drawn range."


def nice_ticks(drawn: Range, count: int) -> tuple[float, ...]:
    """Place about `count` ticks on round values (multiples of 1, 2 or 5 times a power of ten)."""
    rough = (drawn.high - drawn.low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda factor: abs(math.log(factor * power / rough)))
    # A hair of tolerance, so that a tick at the very end is not lost to rounding.
    first, last = math.ceil(drawn.low / step - 1e-9), math.floor(drawn.high / step + 1e-9)
    return tuple(round(index * step, 12) for index in range(first, last + 1))


def log_ticks(drawn: Range) -> tuple[float, ...]:
    """Place ticks of a logarithmic axis, whose range is that of the exponents, on 1, 2 and 5 times a power of ten."""
    # Beyond two and a half powers of ten the powers are ticks enough.
    factors = (1, 2, 5) if drawn.high - drawn.low < 2.5 else (1,)
    powers = range(math.floor(drawn.low), math.ceil(drawn.high) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    # A range between two round values still gets one tick, its middle.
    return tuple(tick for tick in ticks if drawn.contains(math.log10(tick))) or (10 ** ((drawn.low + drawn.high) / 2),)


def _quantile(ordered: Sequence[float], fraction: float) -> float:
    position = fraction * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
