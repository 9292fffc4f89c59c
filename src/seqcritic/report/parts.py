"""The parts of a comparison, and how each is read from JSON."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from seqcritic.report.records import Record


@dataclass(frozen=True, slots=True)
class Point:
    """One validation: the compute spent so far in likelihood updates, the updates made, and the score."""

    compute: float
    updates: int
    score: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The validation scores of one run of one method."""

    label: str
    seed: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class BeamScore:
    """The test result of one method by beam search, as `MethodRow` has it for greedy search.

    `rhos` are the length rewards, one for each seed, that were best on the validation set.
    """

    width: int
    rhos: tuple[float, ...]
    score: float
    low: float
    high: float
    p_value: float | None
    seed_scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MethodRow:
    """The test result of one method.

    `score` is the mean over seeds, `low` and `high` its 95% interval over sentences, and `p_value` that of a paired
    bootstrap against the baseline (None for the baseline itself), not corrected for the number of methods, as
    `Comparison.p_value` is. `cost_per_update` counts likelihood updates, and `seconds` were measured. The search was
    greedy; `beam` is the result of a beam search too. `critic_explains` is the share of the variance of held-out
    returns that the critic explained when joint training began, the mean over seeds; None without a critic.
    """

    label: str
    score: float
    low: float
    high: float
    p_value: float | None
    seed_scores: tuple[float, ...]
    updates: int
    cost_per_update: float
    seconds: float
    beam: BeamScore | None = None
    critic_explains: float | None = None

    @property
    def seed_deviation(self) -> float | None:
        """The standard deviation of the scores over seeds; None where there is one seed, or a score is not finite."""
        if len(self.seed_scores) < 2 or not all(map(math.isfinite, self.seed_scores)):
            return None
        return statistics.stdev(self.seed_scores)


@dataclass(frozen=True, slots=True)
class Example:
    """One test sentence with what each method, by label, made of it."""

    source: str
    reference: str
    predictions: dict[str, str]


def read_row(record: Record) -> MethodRow:
    """Read the result of one method; older ones have no beam search."""
    return MethodRow(
        label=record.text("label"),
        score=record.number("score"),
        low=record.number("low"),
        high=record.number("high"),
        p_value=record.optional_number("p_value"),
        seed_scores=record.numbers("seed_scores"),
        updates=record.integer("updates"),
        cost_per_update=record.number("cost_per_update"),
        seconds=record.number("seconds"),
        beam=_read_beam(record.record("beam")) if record.has("beam") else None,
        critic_explains=record.number("critic_explains") if record.has("critic_explains") else None,
    )


def _read_beam(record: Record) -> BeamScore:
    return BeamScore(
        width=record.integer("width"),
        rhos=record.numbers("rhos"),
        score=record.number("score"),
        low=record.number("low"),
        high=record.number("high"),
        p_value=record.optional_number("p_value"),
        seed_scores=record.numbers("seed_scores"),
    )


def read_curve(record: Record) -> Curve:
    """Read a curve."""
    points = tuple(
        Point(point.number("compute"), point.integer("updates"), point.number("score"))
        for point in record.records("points")
    )
    return Curve(record.text("label"), record.integer("seed"), points)


def read_example(record: Record) -> Example:
    """Read an example."""
    return Example(record.text("source"), record.text("reference"), record.text_mapping("predictions"))
