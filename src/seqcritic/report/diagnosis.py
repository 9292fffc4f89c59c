"""What a diagnosis of gradient estimators consists of: plain data, from which tables and pages are made."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from seqcritic.report.records import Flag, Number, Record, Whole

SAMPLES = (1, 4, 16)  # M, samples for each example, at which the mean squared error is reported
ACTOR_CRITIC, GAE = "actor-critic", "gae"  # the estimators that have the bias of what they trust
CERTAIN = 2.0  # standard errors beyond which a figure is told from 0


class Figure(NamedTuple):
    """An estimate and its standard error, which JSON holds as a pair."""

    value: Number
    error: Number


@dataclass(frozen=True, slots=True)
class EstimatorRow:
    """One estimator against the true gradient; all lengths are in units of the true gradient's.

    `variance` is the trace of the covariance of one draw, `bias_square` the squared length of the bias, `cosine` that
    of the expected estimate to the truth. `errors` are mean squared errors and `alignments` cosines that a best
    scaling would leave, with M samples for each example. `samples` match one of actor-critic, or of generalised
    advantages where a value function is diagnosed, in mean squared error, `aligned_samples` in alignment; null where no
    number does.
    """

    name: str
    unbiased: Flag
    variance: Figure
    bias_square: Figure
    cosine: Figure
    errors: tuple[Number, ...]
    alignments: tuple[Number, ...]
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

    Spreads are root mean squares of the differences to the mean of a step; `unlikely_favourites` is the fraction of
    steps at which the token of the highest value is one that the actor would hardly take.
    """

    prefixes: Whole
    true_spread: Number
    critic_spread: Number
    correlation: Number
    unlikely_favourites: Number  # not known of a value function, which is asked for the likely ones alone
    correlation_error: Number = math.nan


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """The estimators at one checkpoint of one run, or of an actor and a critic that no run is known of.

    Errors are standard errors, NaN in what earlier versions wrote.
    """

    label: str
    method: str
    updates: Whole | None  # where a run is known
    split: str  # empty where the examples were given
    examples: Whole
    draws: Whole
    mean_return: Number
    explained_variance: Number
    gradient_norm: Number
    gradient_error: Number  # length of the error of the true gradient, over its own length
    wanted_error: Number
    truth: str  # the estimator that the truth was taken from
    estimators: tuple[EstimatorRow, ...]
    token_values: TokenValues | None = None  # not measured by earlier versions
    mean_return_error: Number = math.nan
    explained_variance_error: Number = math.nan

    @property
    def title(self) -> str:
        """What is diagnosed, in a line."""
        updates = "" if self.updates is None else f", {self.updates:,} updates"
        return f"{self.label} ({self.method}{updates})"

    @property
    def is_of_states(self) -> bool:
        """Whether a function of prefixes was diagnosed, not a critic of tokens."""
        return all(row.name != ACTOR_CRITIC for row in self.estimators)

    @property
    def followed(self) -> EstimatorRow:
        """The estimator that trusts the critic."""
        return self.estimator(GAE if self.is_of_states else ACTOR_CRITIC)

    @property
    def is_known(self) -> bool:
        """Whether the true gradient is known as well as was wanted."""
        return self.gradient_error <= self.wanted_error

    def estimator(self, name: str) -> EstimatorRow:
        """Return one estimator's figures."""
        return next(row for row in self.estimators if row.name == name)


@dataclass(frozen=True, slots=True)
class Diagnosis(Record):
    """Checkpoints of one run or of several, in the order they were given."""

    record_name: ClassVar[str] = "diagnosis"
    rows: tuple[DiagnosisRow, ...]
    environment: dict[str, str]


def join_diagnoses(parts: Sequence[Diagnosis]) -> Diagnosis:
    """Put diagnoses one after another."""
    environment = parts[-1].environment if parts else {}
    return Diagnosis(tuple(row for part in parts for row in part.rows), environment)
