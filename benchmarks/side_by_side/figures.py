"""Runs in turns, and the ratio of their medians with its spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of one run, a step."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians, and the quartiles of the ratios of neighbouring runs."""

    value: float
    low: float
    high: float


def alternate(sides: Mapping[str, Callable[[], Timing]], rounds: int) -> dict[str, list[Timing]]:
    """Run every side once a round, in turns, so that other load and the machine's moods fall on all alike."""
    times: dict[str, list[Timing]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            times[name].append(run())
    return times


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Return median / median of two equally long series that were measured in turns."""
    pairs = [numerator / denominator for numerator, denominator in zip(numerators, denominators, strict=True)]
    low, high = quartiles(pairs)
    return Ratio(statistics.median(numerators) / statistics.median(denominators), low, high)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the first and third quartile, the only value twice if there is one."""
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def better(times: Mapping[str, Sequence[float]]) -> str:
    """Return the side with the lowest median."""
    return min(times, key=lambda name: statistics.median(times[name]))
