"""What a diagnosis of gradient estimators consists of: plain data, from which tables and pages are made."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from seqcritic.report.records import Record, finite_or_none

SAMPLES = (1, 4, 16)  # M, samples for each example, at which the mean squared error is reported
CERTAIN = 2.0  # standard errors beyond which a figure is told from 0


@dataclass(frozen=True, slots=True)
class Figure:
    """An estimate and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class EstimatorRow:
    """One estimator against the true gradient; all lengths are in units of the true gradient's.

    `variance` is the trace of the covariance of one draw, `bias_square` the squared length of the bias, `cosine` that
    of the expected estimate to the truth. `errors` are mean squared errors and `alignments` cosines that a best
    scaling would leave, with M samples for each example. `samples` match one of actor-critic in mean squared error,
    `aligned_samples` in alignment; null where no number does.
    """

    name: str
    unbiased: bool
    variance: Figure
    bias_square: Figure
    cosine: Figure
    errors: tuple[float, ...]
    alignments: tuple[float, ...]
    samples: Figure
    aligned_samples: Figure

    @property
    def bias(self) -> float:
        """The length of the bias, 0 where the noise is longer than it."""
        return math.sqrt(max(self.bias_square.value, 0.0))

    @property
    def bias_bounds(self) -> tuple[float, float]:
        """The lengths of the bias that two standard errors leave open."""
        ends = (self.bias_square.value + sign * CERTAIN * self.bias_square.error for sign in (-1, 1))
        low, high = (math.sqrt(max(end, 0.0)) if math.isfinite(end) else math.nan for end in ends)
        return low, high

    @property
    def is_biased(self) -> bool:
        """Whether the bias can be told from 0."""
        return self.bias_square.value > CERTAIN * self.bias_square.error


@dataclass(frozen=True, slots=True)
class TokenValues:
    """The critic's values of the likeliest tokens of single steps beside the true ones, in units of the return.

    Spreads are root mean squares of the differences to the mean of a step; `unlikely_favourites` is the share of steps
    at which the token of the highest value is one that the actor would hardly take.
    """

    prefixes: int
    true_spread: float
    critic_spread: float
    correlation: float
    unlikely_favourites: float


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """The estimators at one moment of one run."""

    label: str
    method: str
    updates: int
    split: str
    examples: int
    draws: int
    mean_return: float
    explained_variance: float
    gradient_norm: float
    gradient_error: float  # length of the error of the true gradient, over its own length
    wanted_error: float
    truth: str  # the estimator that the truth was taken from
    estimators: tuple[EstimatorRow, ...]
    token_values: TokenValues | None = None  # not measured by earlier versions

    @property
    def is_known(self) -> bool:
        """Whether the true gradient is known as well as was wanted."""
        return self.gradient_error <= self.wanted_error

    def estimator(self, name: str) -> EstimatorRow:
        """Return one estimator's figures."""
        return next(row for row in self.estimators if row.name == name)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Moments of one run, or several runs, in the order they were given."""

    rows: tuple[DiagnosisRow, ...]
    environment: dict[str, str]

    def to_dict(self) -> dict[str, object]:
        """Turn the diagnosis into what JSON can hold; a figure is its value and its standard error."""
        record = finite_or_none(_pairs(asdict(self)))
        assert isinstance(record, dict)
        return record

    @classmethod
    def from_dict(cls, content: Mapping[str, object]) -> "Diagnosis":
        """Read what `to_dict` wrote; a fault is a ValueError that names the field."""
        record = Record(content, "diagnosis")
        return cls(tuple(_read_row(row) for row in record.records("rows")), record.text_mapping("environment"))


def join_diagnoses(parts: Sequence[Diagnosis]) -> Diagnosis:
    """Put diagnoses one after another."""
    environment = parts[-1].environment if parts else {}
    return Diagnosis(tuple(row for part in parts for row in part.rows), environment)


def _pairs(value: object) -> object:
    """Write every figure, however deep, as two numbers."""
    if isinstance(value, Mapping):
        if set(value) == {"value", "error"}:
            return [value["value"], value["error"]]
        return {key: _pairs(item) for key, item in value.items()}
    return [_pairs(item) for item in value] if isinstance(value, (list, tuple)) else value


def _read_row(record: Record) -> DiagnosisRow:
    return DiagnosisRow(
        label=record.text("label"),
        method=record.text("method"),
        updates=record.integer("updates"),
        split=record.text("split"),
        examples=record.integer("examples"),
        draws=record.integer("draws"),
        mean_return=record.number("mean_return"),
        explained_variance=record.number("explained_variance"),
        gradient_norm=record.number("gradient_norm"),
        gradient_error=record.number("gradient_error"),
        wanted_error=record.number("wanted_error"),
        truth=record.text("truth"),
        estimators=tuple(_read_estimator(entry) for entry in record.records("estimators")),
        token_values=_read_token_values(record.record("token_values")) if record.has("token_values") else None,
    )


def _read_token_values(record: Record) -> TokenValues:
    return TokenValues(
        prefixes=record.integer("prefixes"),
        true_spread=record.number("true_spread"),
        critic_spread=record.number("critic_spread"),
        correlation=record.number("correlation"),
        unlikely_favourites=record.number("unlikely_favourites"),
    )


def _read_estimator(record: Record) -> EstimatorRow:
    return EstimatorRow(
        name=record.text("name"),
        unbiased=record.flag("unbiased"),
        variance=_read_figure(record, "variance"),
        bias_square=_read_figure(record, "bias_square"),
        cosine=_read_figure(record, "cosine"),
        errors=record.numbers("errors"),
        alignments=record.numbers("alignments"),
        samples=_read_figure(record, "samples"),
        aligned_samples=_read_figure(record, "aligned_samples"),
    )


def _read_figure(record: Record, key: str) -> Figure:
    pair = record.numbers(key)
    if len(pair) != 2:
        raise ValueError(f"{key}: expected a value and its standard error, found {len(pair)} numbers")
    return Figure(*pair)
