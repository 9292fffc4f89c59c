"""A diagnosis as one HTML page: what each estimator's error is made of, at one or several moments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqcritic.report.columns import html_columns
from seqcritic.report.diagnosis import CERTAIN, SAMPLES, Diagnosis, DiagnosisRow, EstimatorRow, Figure
from seqcritic.report.diagnosis_tables import (
    LEGEND,
    MEANINGS,
    describe_moment,
    list_estimator_columns,
    write_verdict,
)
from seqcritic.report.document import compose_document
from seqcritic.report.drawing import PALETTE
from seqcritic.report.markup import Markup, element, join, text
from seqcritic.report.slots import Dot, SlotLine, draw_slots

_TITLE = "Bias and variance of the gradient"
_ERROR_NOTE = (
    "More samples for each example divide the variance and leave the bias: a line that flattens has come down to its "
    "bias, and where it crosses another line the other estimator is the better one."
)


def render_diagnosis(diagnosis: Diagnosis) -> str:
    """Render the whole page."""
    verdicts = [element("p", {"class": "headline"}, text(write_verdict(row))) for row in diagnosis.rows[-1:]]
    header = element(
        "header",
        {},
        element("h1", {}, text(_TITLE)),
        *verdicts,
        element("ul", {"class": "remarks"}, element("li", {}, text(LEGEND))),
    )
    sections = [header]
    if len(diagnosis.rows) > 1:
        sections.append(_render_moments(diagnosis.rows))
    sections += [_render_moment(row) for row in diagnosis.rows]
    entries = [
        join([element("dt", {}, text(name)), element("dd", {}, text(value))], "")
        for name, value in diagnosis.environment.items()
    ]
    details = element("dl", {"class": "environment"}, join(entries))
    sections.append(element("section", {"id": "details"}, element("h2", {}, text("Where it was measured")), details))
    return compose_document(_TITLE, ("page.css", "curves.css"), "", sections)


def _render_moment(row: DiagnosisRow) -> Markup:
    """Render the table of one moment, and the error of each estimator over the number of samples."""
    lines = [
        SlotLine(MEANINGS[one.name], tuple(Dot(error) for error in one.errors), index)
        for index, one in enumerate(row.estimators)
    ]
    slots = [f"M = {samples}" for samples in SAMPLES]
    return element(
        "section",
        {},
        element("h2", {}, text(f"{row.label} ({row.method}, {row.updates:,} updates)")),
        element("p", {"class": "remark"}, text(write_verdict(row))),
        html_columns(list_estimator_columns(row)),
        element("p", {"class": "remark"}, text(describe_moment(row))),
        _figure(slots, lines, "mean squared error / ‖∇V‖²", "samples for each example", True),
        element("p", {"class": "remark"}, text(_ERROR_NOTE)),
    )


@dataclass(frozen=True, slots=True)
class MomentPicture:
    """One figure of every estimator, from moment to moment."""

    title: str
    dot_of: Callable[[EstimatorRow], Dot]
    logarithmic: bool = False
    only_biased: bool = False

    def lines(self, rows: Sequence[DiagnosisRow]) -> list[SlotLine]:
        """Return a line for each estimator that is shown."""
        return [
            SlotLine(MEANINGS[first.name], tuple(self.dot_of(row.estimators[index]) for row in rows), index)
            for index, first in enumerate(rows[0].estimators)
            if not (self.only_biased and first.unbiased)
        ]


MOMENT_PICTURES = {
    "variance": MomentPicture("variance of one draw / ‖∇V‖²", lambda one: _dot(one.variance), logarithmic=True),
    "bias": MomentPicture("length of the bias / ‖∇V‖", lambda one: _bias_dot(one), only_biased=True),
    "cosine": MomentPicture("cosine of the mean to the true gradient", lambda one: _dot(one.cosine), only_biased=True),
    "samples": MomentPicture(
        "samples as good as one of actor-critic, by mean squared error", lambda one: _dot(one.samples), logarithmic=True
    ),
    "alignment": MomentPicture("alignment of one draw with the true gradient", lambda one: Dot(one.alignments[0])),
}


def _render_moments(rows: Sequence[DiagnosisRow]) -> Markup:
    """Render how the figures differ from row to row."""
    slots = [row.label for row in rows]
    parts = [_figure(slots, one.lines(rows), one.title, "", one.logarithmic) for one in MOMENT_PICTURES.values()]
    explained = tuple(Dot(row.explained_variance) for row in rows)
    lengths = tuple(Dot(row.gradient_norm) for row in rows)
    known = [
        SlotLine("share of the return's variance explained by the critic", explained, len(PALETTE) - 1),
        SlotLine("length of the true gradient", lengths, len(PALETTE) - 1),
    ]
    parts += [_figure(slots, [line], line.label, "", False) for line in known]
    return element("section", {"id": "moments"}, element("h2", {}, text("From moment to moment")), *parts)


def _figure(slots: Sequence[str], lines: Sequence[SlotLine], title: str, slot_title: str, logarithmic: bool) -> Markup:
    """Draw a chart in two widths, of which the style sheet shows the one that fits."""
    wide = draw_slots(slots, lines, title, slot_title, logarithmic)
    narrow = draw_slots(slots, lines, title, slot_title, logarithmic, width=420, height=300)
    return element("figure", {}, element("div", {"class": "wide"}, wide), element("div", {"class": "narrow"}, narrow))


def _dot(figure: Figure) -> Dot:
    reach = CERTAIN * figure.error
    return Dot(figure.value, figure.value - reach, figure.value + reach)


def _bias_dot(row: EstimatorRow) -> Dot:
    return Dot(row.bias, *row.bias_bounds)
