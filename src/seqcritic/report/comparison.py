"""What a comparison of methods consists of: plain data, from which every table, plot and page is made."""

import math
import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from seqcritic.report.records import Flag, Known, Number, Record, Whole, finite_or_none
from seqcritic.report.significance import correct_by_holm, p_over_seeds


@dataclass(frozen=True, slots=True)
class Point:
    """One validation: the compute spent so far in likelihood updates, the updates made, and the score."""

    compute: Number
    updates: Whole
    score: Number


@dataclass(frozen=True, slots=True)
class Curve:
    """The validation scores of one run of one method."""

    label: str
    seed: Whole
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class BeamScore:
    """The test result of one method by beam search, as `MethodRow` has it for greedy search.

    `rhos` are the length rewards, one for each seed, that were best on the validation set.
    """

    width: Whole
    rhos: tuple[Number, ...]
    score: Number
    low: Number
    high: Number
    p_value: Known | None
    seed_scores: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class MethodRow:
    """The test result of one method.

    `score` is the mean over seeds, `low` and `high` its 95% interval over sentences, and `p_value` that of a paired
    bootstrap against the baseline (None for the baseline itself), not corrected for the number of methods, as
    `Comparison.p_value` is. `cost_per_update` counts likelihood updates, and `seconds` were measured. The search was
    greedy; `beam` is the result of a beam search too. `critic_explains` is the fraction of the variance of held-out
    returns that the critic explained when joint training began, the mean over seeds; None without a critic.
    """

    label: str
    score: Number
    low: Number
    high: Number
    p_value: Known | None
    seed_scores: tuple[Number, ...]
    updates: Whole
    cost_per_update: Number
    seconds: Number
    beam: BeamScore | None = None
    critic_explains: Known | None = None

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
    further_references: tuple[str, ...] = ()
    scores: dict[str, str] = field(default_factory=dict)  # of the predictions, where the score is a user's own


@dataclass(frozen=True, slots=True)
class Comparison(Record):
    """Methods evaluated by one score on one test set; a single run is a comparison with one row.

    Fields with a default are those that comparisons of earlier versions do not have.
    """

    record_name: ClassVar[str] = "comparison"
    title: str
    score_name: str
    lower_is_better: Flag
    signature: str
    baseline: str
    rows: tuple[MethodRow, ...]
    curves: tuple[Curve, ...]
    examples: tuple[Example, ...]
    configuration: str
    environment: dict[str, str]
    notes: tuple[str, ...]
    beam_signature: str = ""
    critic_curves: tuple[Curve, ...] = ()  # of the fraction of variance that the critics explain
    train_curves: tuple[Curve, ...] = ()  # of the score on some of the training examples
    valid_signature: str = ""  # of the curves
    resampled: str = "sentences"  # what the bootstrap of the p-values drew

    def __post_init__(self) -> None:
        labels = [row.label for row in self.rows]
        if not labels:
            raise ValueError("comparison.rows: empty; a report needs at least one method")
        if len(set(labels)) < len(labels):
            raise ValueError(f"comparison.rows: labels must differ, found {', '.join(labels)}")
        # A single run is measured against nothing, whatever its baseline is called.
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
    def chosen_rows(self) -> tuple[MethodRow, ...]:
        """The rows with the best validation score, by which a method is called the best: several when they tie.

        The test scores have no part in the choice: the best of many of them is better than it will prove.
        """
        scores = {row.label: self.valid_score(row) for row in self.rows if math.isfinite(row.score)}
        known = [score for score in scores.values() if score is not None]
        if not known:
            return ()
        best = min(known) if self.lower_is_better else max(known)
        return tuple(row for row in self.rows if scores.get(row.label) == best)

    def valid_score(self, row: MethodRow) -> float | None:
        """Return the validation score of the actors that were evaluated, the mean over seeds; None where none is known.

        Of each run the best actor on valid is evaluated, so this is the mean of the best points of its curves.
        """
        better = min if self.lower_is_better else max
        curves = [curve for curve in self.curves if curve.label == row.label]
        finite = [[point.score for point in curve.points if math.isfinite(point.score)] for curve in curves]
        # A run without a finite point would make the mean that of fewer seeds than the test score is of.
        if not finite or not all(finite):
            return None
        return statistics.fmean(better(scores) for scores in finite)

    def p_value(self, row: MethodRow) -> float | None:
        """Return the p-value of a row's difference from the baseline, corrected for the number of methods tested.

        Before Holm's correction it is the larger of two: the bootstrap's, and with several seeds a t-test over them.
        """
        # All methods of this search are one family: what a row must stand depends on how many were tried.
        tested = {each.label: p for each in self.rows if (p := self._uncorrected(each)) is not None}
        if row.label not in tested:
            return None
        return dict(zip(tested, correct_by_holm(list(tested.values())), strict=True))[row.label]

    @property
    def num_tests(self) -> int:
        """How many methods were tested against the baseline."""
        return sum(self._uncorrected(row) is not None for row in self.rows)

    def _uncorrected(self, row: MethodRow) -> float | None:
        baseline = self.baseline_row
        if baseline is None or row.p_value is None or not math.isfinite(row.p_value):
            return None
        ours, theirs = self._seeds(row), self._seeds(baseline)
        # Paired only where both say their seeds and say the same: else a pairing would be of strangers.
        by_seed = p_over_seeds(row.seed_scores, baseline.seed_scores, paired=ours is not None and ours == theirs)
        return row.p_value if by_seed is None else max(row.p_value, by_seed)

    def _seeds(self, row: MethodRow) -> tuple[int, ...] | None:
        """Return the seeds of a row's scores, which its curves tell in the same order."""
        seeds = tuple(curve.seed for curve in self.curves if curve.label == row.label)
        return seeds if len(seeds) == len(row.seed_scores) else None

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
            # In the fields of greedy search, so that every table and sentence serves both.
            rows.append(replace(row, **scores))
        return replace(self, rows=tuple(rows), signature=self.beam_signature)

    def gain(self, row: MethodRow) -> float | None:
        """Say by how many percent of the baseline's score a row is better (negative: worse)."""
        baseline = self.baseline_row
        if baseline is None or row.label == baseline.label or baseline.score == 0:
            return None
        # By the absolute value: a score may be negative, and better is then still a rise.
        change = 100 * (row.score - baseline.score) / abs(baseline.score)
        if not math.isfinite(change):
            return None
        return -change if self.lower_is_better else change

    def to_dict(self) -> dict[str, Any]:
        """Turn the comparison into what JSON can hold; what follows from the rest is for readers, not read back."""
        record = asdict(self) | {"chosen_on_validation": [row.label for row in self.chosen_rows]}
        for entry, row in zip(record["rows"], self.rows, strict=True):
            entry |= {"valid_score": self.valid_score(row)} | self._derived(row)
        if (with_beam := self.with_beam) is not None:
            for entry, row in zip(record["rows"], with_beam.rows, strict=True):
                entry["beam"] |= with_beam._derived(row)
        return {name: finite_or_none(value) for name, value in record.items()}

    def _derived(self, row: MethodRow) -> dict[str, object]:
        """Return the figures that tables derive from a row's fields, for one search."""
        return {
            "p_value_holm": self.p_value(row),
            "seed_deviation": row.seed_deviation,
            "seed_range": [min(row.seed_scores), max(row.seed_scores)],
        }
