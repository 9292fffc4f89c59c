"""A diagnosis in words, numbers and pictures: the columns of its table, its headline, and its figures over
checkpoints."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqcritic.report.charts import Dot, DotLine
from seqcritic.report.diagnosis import CERTAIN, SAMPLES, DiagnosisRow, EstimatorRow, Figure, TokenValues
from seqcritic.report.formats import ABSENT
from seqcritic.report.tables import Column, list_cells

MEANINGS = {
    "reinforce": "REINFORCE, linear",
    "reinforce-critic": "REINFORCE, critic",
    "actor-critic": "actor-critic",
    "corrected": "corrected AC",
    "gae": "GAE",
}


def list_estimator_columns(row: DiagnosisRow) -> tuple[Column, ...]:
    """List what the table of one checkpoint shows."""
    columns = list_cells(
        row.estimators,
        ("method", "estimator", lambda one: MEANINGS[one.name]),
        ("variance", "variance", lambda one: format_figure(one.variance)),
        ("bias", "bias", lambda one: format_bias(one, one.name == row.truth)),
        ("cosine", "cosine", lambda one: format_number(one.cosine.value)),
        ("alignment", "aligned M=1", lambda one: format_number(one.alignments[0])),
        ("samples", "samples by error", lambda one: format_figure(one.samples)),
        ("aligned-samples", "samples by alignment", lambda one: format_figure(one.aligned_samples)),
    )
    errors = zip(*(one.errors for one in row.estimators), strict=True)
    # Behind the cosine, before what the columns say of one draw.
    columns[4:4] = [
        Column("error", f"error M={samples}", tuple(map(format_number, of_all)))
        for samples, of_all in zip(SAMPLES, errors, strict=True)
    ]
    return tuple(columns)


def describe_row(row: DiagnosisRow) -> str:
    """Say how the figures of one checkpoint were made, and whether the truth is known well enough."""
    known = (
        f"The true gradient is known to {row.gradient_error:.1%} of its length"
        if math.isfinite(row.gradient_error)
        else "The true gradient is shorter than its own noise"
    )
    reached = "" if row.is_known else f"; wanted were {row.wanted_error:.1%}: more draws are needed"
    critic = "value function" if row.is_of_states else "critic"
    return (
        f"{row.draws:,} draws of one sample for each of {row.examples:,} examples{row.split and f' of {row.split}'}. "
        f"{known}{reached}. Mean return {row.mean_return:.3g}{_interval(row.mean_return, row.mean_return_error)}; the "
        f"{critic} explains {row.explained_variance:.0%}"
        f"{_interval(row.explained_variance, row.explained_variance_error, '.0%')} of its variance."
        f"{_describe_tokens(row.token_values)}"
    )


def _interval(value: float, error: float, form: str = ".3g") -> str:
    """Write the figures that two standard errors leave open, where the error is known."""
    if not math.isfinite(error):
        return ""
    return f" ({value - CERTAIN * error:{form}} to {value + CERTAIN * error:{form}})"


def _describe_tokens(values: TokenValues | None) -> str:
    """Say how well the critic tells the tokens of one step apart."""
    if values is None:
        return ""
    favourites = (
        f", and at {values.unlikely_favourites:.0%} of the steps its favourite is a token the actor would hardly take"
        if math.isfinite(values.unlikely_favourites)
        else ", where it values a token by the state that the token leads to"
    )
    correlation = values.correlation
    return (
        f" Its values of the tokens of one step correlate with the true ones by {format_number(correlation)}"
        f"{_interval(correlation, values.correlation_error, '.2f') if math.isfinite(correlation) else ''}; "
        f"they lie {format_number(values.critic_spread)} apart, the true ones "
        f"{format_number(values.true_spread)}{favourites}."
    )


def write_verdict(row: DiagnosisRow) -> str:
    """Say in a sentence or two what one checkpoint shows."""
    followed = row.followed
    linear, with_critic = row.estimator("reinforce"), row.estimator("reinforce-critic")
    name, critic = ("GAE", "value function") if row.is_of_states else ("actor-critic", "critic")
    worth = (
        f"{row.label}: one sample of {name} is as near to the true gradient as "
        f"{format_number(linear.samples.value)} of REINFORCE with a linear baseline, or "
        f"{format_number(with_critic.samples.value)} with the {critic} as the baseline."
    )
    if not followed.is_biased:
        bound = format_number(followed.bias_bounds[1])
        return f"{worth} Its bias cannot be told from 0: it is below {bound} of the length."
    # Errors are bias² + variance / samples: they meet where the two variances differ by samples · bias².
    crossing = (with_critic.variance.value - followed.variance.value) / followed.bias_square.value
    more = (
        f" From {format_number(max(crossing, 0) * row.examples)} samples in an update on, the unbiased one is nearer."
        if math.isfinite(crossing)
        else ""
    )
    return (
        f"{worth} Its bias is {format_number(followed.bias)} of the gradient's length, cosine "
        f"{format_number(followed.cosine.value)}.{more}"
    )


def format_number(value: float) -> str:
    """Write three significant digits, without an exponent where that is readable."""
    if not math.isfinite(value):
        return ABSENT
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}"


def format_figure(figure: Figure) -> str:
    """Write a figure with its standard error."""
    if not math.isfinite(figure.value) or not math.isfinite(figure.error) or figure.error == 0:
        return format_number(figure.value)
    # Through float, which writes one digit without an exponent where it can.
    return f"{format_number(figure.value)} ±{float(f'{figure.error:.1g}'):g}"


def format_bias(row: EstimatorRow, is_truth: bool) -> str:
    """Write the length of the bias with its standard error, or the length it is below where noise hides it."""
    if is_truth:
        return "the truth"
    if not row.is_biased:
        return f"<{format_number(row.bias_bounds[1])}"
    # The error of a square root: d√x = dx / (2 √x).
    return format_figure(Figure(row.bias, row.bias_square.error / (2 * row.bias)))


LEGEND = (
    "All lengths are in units of the true gradient's. REINFORCE has the linear baseline or the critic as its baseline; "
    "corrected AC is actor-critic made unbiased by the return; GAE are the generalised advantages of a value function. "
    "variance: trace of the covariance of one draw. bias: "
    f"length of the mean's distance from the truth; < where it is less than {CERTAIN:g} standard errors from 0. "
    "error: mean squared error with M samples for each example. aligned: cosine to the truth with the noise counted. "
    "samples: how many are as good as one of actor-critic, or of GAE, by mean squared error and by alignment."
)


@dataclass(frozen=True, slots=True)
class EstimatorPicture:
    """One figure of every estimator, from checkpoint to checkpoint."""

    title: str
    dot_of: Callable[[EstimatorRow], Dot]
    logarithmic: bool = False
    only_biased: bool = False

    def lines(self, rows: Sequence[DiagnosisRow]) -> list[DotLine]:
        """Return a line for each estimator that is shown, of those that every row has."""
        # Checkpoints with critics of tokens have other estimators than those with value functions.
        common = set.intersection(*({one.name for one in row.estimators} for row in rows))
        return [
            DotLine(MEANINGS[first.name], tuple(self.dot_of(row.estimator(first.name)) for row in rows), index)
            for index, first in enumerate(rows[0].estimators)
            if first.name in common and not (self.only_biased and first.unbiased)
        ]


ESTIMATOR_PICTURES = {
    "variance": EstimatorPicture("variance of one draw / ‖∇V‖²", lambda one: _dot(one.variance), logarithmic=True),
    "bias": EstimatorPicture("length of the bias / ‖∇V‖", lambda one: _bias_dot(one), only_biased=True),
    "cosine": EstimatorPicture(
        "cosine of the mean to the true gradient", lambda one: _dot(one.cosine), only_biased=True
    ),
    "samples": EstimatorPicture(
        "samples as good as one of actor-critic, by mean squared error", lambda one: _dot(one.samples), logarithmic=True
    ),
    "alignment": EstimatorPicture("alignment of one draw with the true gradient", lambda one: Dot(one.alignments[0])),
}


def _dot(figure: Figure) -> Dot:
    reach = CERTAIN * figure.error
    return Dot(figure.value, figure.value - reach, figure.value + reach)


def _bias_dot(row: EstimatorRow) -> Dot:
    return Dot(row.bias, *row.bias_bounds)
