"""What a comparison of methods consists of: plain data, from which every table, plot and page is made."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from seqcritic.report.parts import (
    BeamScore,
    Curve,
    Example,
    MethodRow,
    Point,
    read_curve,
    read_example,
    read_row,
)
from seqcritic.report.records import Record, finite_or_none

__all__ = ["BeamScore", "Comparison", "Curve", "Example", "MethodRow", "Point"]


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
    beam_signature: str = ""
    critic_curves: tuple[Curve, ...] = ()  # of the share of variance that the critics explain
    train_curves: tuple[Curve, ...] = ()  # of the score on some of the training examples
    valid_signature: str = ""  # of the curves; comparisons of earlier versions do not have it

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

    @property
    def with_beam(self) -> "Comparison | None":
        """The same methods by their scores with beam search, or None where one of them has none."""
        rows = []
        for row in self.rows:
            if row.beam is None:
                return None
            beam = row.beam
            scores = {name: getattr(beam, name) for name in ("score", "low", "high", "p_value", "seed_scores")}
            rows.append(replace(row, **scores))
        return replace(self, rows=tuple(rows), signature=self.beam_signature)

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
            rows=tuple(read_row(row) for row in record.records("rows")),
            curves=tuple(read_curve(curve) for curve in record.records("curves")),
            examples=tuple(read_example(example) for example in record.records("examples")),
            configuration=record.text("configuration"),
            environment=record.text_mapping("environment"),
            notes=record.texts("notes"),
            beam_signature=record.text("beam_signature") if record.has("beam_signature") else "",
            critic_curves=_read_curves(record, "critic_curves"),
            train_curves=_read_curves(record, "train_curves"),
            valid_signature=record.text("valid_signature") if record.has("valid_signature") else "",
        )


def _read_curves(record: Record, name: str) -> tuple[Curve, ...]:
    """Read curves that comparisons of earlier versions do not have."""
    return tuple(read_curve(curve) for curve in record.records(name)) if record.has(name) else ()
