"""What a comparison of methods consists of: plain data, from which every table, plot and page is made."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from seqcritic.report.records import Record, finite_or_none


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
class MethodRow:
    """The test result of one method.

    `score` is the mean over seeds, `low` and `high` its 95% interval, and `p_value` that of a paired
    bootstrap against the baseline (None for the baseline itself). `cost_per_update` counts likelihood
    updates, and `seconds` were measured.
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


@dataclass(frozen=True, slots=True)
class Example:
    """One test sentence with what each method, by label, made of it."""

    source: str
    reference: str
    predictions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods judged by one score on one test set; a single run is a comparison with one row."""

    title: str
    score_name: str
    lower_is_better: bool
    signature: str
    baseline: str
    rows: tuple[MethodRow, ...]
    curves: tuple[Curve, ...]
    examples: tuple[Example, ...]
    configuration: str
    environment: dict[str, str]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        labels = [row.label for row in self.rows]
        if not labels:
            raise ValueError("comparison.rows: empty; a report needs at least one method")
        if len(set(labels)) < len(labels):
            raise ValueError(f"comparison.rows: labels must differ, found {', '.join(labels)}")
        if len(labels) > 1 and self.baseline not in labels:
            known = ", ".join(labels)
            raise ValueError(f"comparison.baseline: {self.baseline!r} is no method; choose one of {known}")

    @property
    def labels(self) -> tuple[str, ...]:
        """Every method that is shown, in the order in which they take their colours."""
        labels = [row.label for row in self.rows] + [curve.label for curve in self.curves]
        return tuple(dict.fromkeys(labels))

    @property
    def baseline_row(self) -> MethodRow | None:
        """The row the others are measured against, or None where there is nothing to compare."""
        if len(self.rows) == 1:
            return None
        return next(row for row in self.rows if row.label == self.baseline)

    @property
    def best_rows(self) -> tuple[MethodRow, ...]:
        """The rows with the best score: one, several when they tie, none when no score is finite."""
        scores = [row.score for row in self.rows if math.isfinite(row.score)]
        if not scores:
            return ()
        best = min(scores) if self.lower_is_better else max(scores)
        return tuple(row for row in self.rows if row.score == best)

    @property
    def num_seeds(self) -> int:
        """The largest number of seeds any method was run with."""
        return max(len(row.seed_scores) for row in self.rows)

    def gain(self, row: MethodRow) -> float | None:
        """Say by how many percent of the baseline's score a row is better (negative: worse)."""
        baseline = self.baseline_row
        if baseline is None or row.label == baseline.label or baseline.score == 0:
            return None
        change = 100 * (row.score - baseline.score) / abs(baseline.score)
        if not math.isfinite(change):
            return None
        return -change if self.lower_is_better else change

    def to_dict(self) -> dict[str, object]:
        """Turn the comparison into what JSON can hold; numbers that are not finite become null."""
        record = finite_or_none(asdict(self))
        assert isinstance(record, dict)
        return record

    @classmethod
    def from_dict(cls, content: Mapping[str, object]) -> "Comparison":
        """Read what `to_dict` wrote; a fault is a ValueError that names the field."""
        record = Record(content, "comparison")
        return cls(
            title=record.text("title"),
            score_name=record.text("score_name"),
            lower_is_better=record.flag("lower_is_better"),
            signature=record.text("signature"),
            baseline=record.text("baseline"),
            rows=tuple(_read_row(row) for row in record.records("rows")),
            curves=tuple(_read_curve(curve) for curve in record.records("curves")),
            examples=tuple(_read_example(example) for example in record.records("examples")),
            configuration=record.text("configuration"),
            environment=record.text_mapping("environment"),
            notes=record.texts("notes"),
        )


def _read_row(record: Record) -> MethodRow:
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
    )


def _read_curve(record: Record) -> Curve:
    points = tuple(
        Point(point.number("compute"), point.integer("updates"), point.number("score"))
        for point in record.records("points")
    )
    return Curve(record.text("label"), record.integer("seed"), points)


def _read_example(record: Record) -> Example:
    return Example(record.text("source"), record.text("reference"), record.text_mapping("predictions"))
