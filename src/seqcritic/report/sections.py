"""The sections of the page about the methods: table, curves, configuration and environment."""

import math
from collections.abc import Sequence

from seqcritic.report.comparison import Comparison, Curve, MethodRow
from seqcritic.report.curves import draw_curves
from seqcritic.report.drawing import style_of
from seqcritic.report.formats import format_score, format_share
from seqcritic.report.markup import Markup, element, join, text
from seqcritic.report.scales import Range
from seqcritic.report.tables import (
    list_chosen,
    list_columns,
    list_signatures,
    list_valid_signatures,
    name_beam,
    write_spread,
)

BENEATH = ("seeds", "spread", "beam-seeds", "beam-spread", "critic")  # columns that stand beneath the label
_COST_NOTE = (
    "Compute is counted in likelihood updates: an update that costs 3× takes as much work as three updates "
    "of likelihood training for the same model. Minutes are measured wall-clock time."
)
_CRITIC_NOTE = (
    "The share of the variance of the return after each token that the critic's values explain, on samples for "
    "validation sentences: 1 is perfect, 0 no better than a constant. First the critic learns with the actor frozen; "
    "joint training begins where the method's learning curve does, and the table holds the share at that point."
)
_TRAINING_NOTE = (
    "The same score of greedy predictions, but for a fixed sample of the training examples; the scale of scores is "
    "this drawing's own. A method whose training score gets worse while its validation score gets better acts as a "
    "regulariser, as the paper saw in methods that learn from their own predictions: it gives up fit to the training "
    "text for progress on other text. The other way round it is overfitting."
)


def render_table(comparison: Comparison) -> Markup:
    """Render the comparison with a small drawing of each interval, on one scale for all rows."""
    # Scores by seed would make a wide column; they stand beneath the label instead, and so does the critic's share.
    columns = [column for column in list_columns(comparison) if column.name not in BENEATH]
    headings = [element("th", {"scope": "col", "class": column.name}, text(column.heading)) for column in columns]
    scale = _interval_scale(comparison)
    chosen = list_chosen(comparison)
    with_beam = comparison.with_beam
    lines = []
    for index, row in enumerate(comparison.rows):
        cells = []
        for column in columns:
            content = text(column.cells[index])
            if column.name == "method":
                remarks = _list_remarks(row, with_beam.rows[index] if with_beam else None)
                content = join([_swatch(index), content, remarks], "")
                cells.append(element("th", {"scope": "row", "class": "method"}, content))
                continue
            if (column.name, row.label) in chosen:
                content = element("strong", {}, content)
            if column.name.endswith("interval") and scale is not None:
                judged = with_beam.rows[index] if with_beam and column.name == "beam-interval" else row
                content = join([_draw_interval(judged, scale, index), element("span", {}, content)], "")
            kind = column.name.removeprefix("beam-")
            names = kind if kind == column.name else f"{kind} {column.name}"
            cells.append(element("td", {"class": names, "data-heading": column.heading}, content))
        lines.append(element("tr", {"data-label": row.label}, *cells))
    style = "results searches" if with_beam else "results"
    head = element("thead", {}, element("tr", {}, *headings))
    body = element("tbody", {}, Markup("\n"), join(lines), Markup("\n"))
    return element(
        "section",
        {"id": "results"},
        element("h2", {}, text("Test results")),
        element("div", {"class": "scroll"}, element("table", {"class": style}, head, body)),
        _write_signatures(list_signatures(comparison)),
        element("p", {"class": "remark"}, text(_COST_NOTE)),
    )


def render_curves(comparison: Comparison) -> Markup:
    """Render the learning curves, and beneath them those on training examples and how much the critics explain."""
    order = comparison.labels
    drawn = {curve.label for curve in comparison.curves}
    buttons = [
        element(
            "button",
            {"type": "button", "aria-pressed": "true", "data-label": label},
            _swatch(index),
            text(label),
        )
        for index, label in enumerate(order)
        if label in drawn
    ]
    # Without the script the buttons would do nothing, so only the script shows them.
    attributes = {"class": "legend", "hidden": "", "role": "group", "aria-label": "Methods shown"}
    legend = [element("div", attributes, *buttons)] if len(buttons) > 1 else []
    parts = [
        element("h2", {}, text("Learning curves")),
        element("figure", {}, join([*legend, *_draw_both(comparison.curves, comparison.score_name, order)])),
        _write_signatures(list_valid_signatures(comparison)),
    ]
    if comparison.train_curves:
        title = f"training {comparison.score_name}"
        drawings = _draw_both(comparison.train_curves, comparison.score_name, order, title, comparison.curves)
        parts += [
            element("h3", {}, text("Training and validation")),
            element("figure", {"id": "training"}, join(drawings)),
            element("p", {"class": "remark"}, text(_TRAINING_NOTE)),
        ]
    if comparison.critic_curves:
        drawings = _draw_both(comparison.critic_curves, "share", order, "share of variance explained")
        parts += [
            element("h3", {}, text("How much the critic explains")),
            element("figure", {"id": "critic"}, join(drawings)),
            element("p", {"class": "remark"}, text(_CRITIC_NOTE)),
        ]
    return element("section", {"id": "curves"}, *parts)


def _draw_both(
    curves: Sequence[Curve], score_name: str, order: Sequence[str], title: str = "", neighbours: Sequence[Curve] = ()
) -> list[Markup]:
    """Draw curves in two widths, of which the style sheet shows the one that fits."""
    wide = draw_curves(curves, score_name, order, title=title, neighbours=neighbours)
    narrow = draw_curves(curves, score_name, order, width=420, height=340, title=title, neighbours=neighbours)
    return [element("div", {"class": "wide"}, wide), element("div", {"class": "narrow"}, narrow)]


def render_details(comparison: Comparison) -> Markup:
    """Render the resolved configuration, folded away, and the environment it ran in."""
    parts = [element("h2", {}, text("How it was run"))]
    if comparison.configuration.strip():
        summary = element("summary", {}, text("Resolved configuration"))
        parts.append(element("details", {}, summary, element("pre", {}, text(comparison.configuration))))
    if comparison.environment:
        entries = [
            join([element("dt", {}, text(name)), element("dd", {}, text(value))], "")
            for name, value in comparison.environment.items()
        ]
        parts.append(element("dl", {"class": "environment"}, join(entries)))
    return element("section", {"id": "details"}, *parts) if len(parts) > 1 else Markup("")


def _list_remarks(row: MethodRow, with_beam: MethodRow | None) -> Markup:
    remarks = []
    if row.critic_explains is not None:
        remarks.append(f"critic explains {format_share(row.critic_explains)}")
    if len(row.seed_scores) > 1:
        remarks.append(f"by seed {_write_seeds(row)}")
        if with_beam is not None:
            remarks.append(f"{name_beam(row)} {_write_seeds(with_beam)}")
    return join([element("span", {"class": "seeds"}, text(remark)) for remark in remarks], "")


def _write_seeds(row: MethodRow) -> str:
    return f"{', '.join(format_score(score) for score in row.seed_scores)}; sd {write_spread(row)}"


def _write_signatures(signatures: Sequence[tuple[str, str]]) -> Markup:
    return join(
        [
            element("p", {"class": "signature"}, text(f"{name}: "), element("code", {}, text(signature)))
            for name, signature in signatures
        ]
    )


def _swatch(index: int) -> Markup:
    return element("span", {"class": f"swatch {style_of(index).classes}", "aria-hidden": "true"})


def _interval_scale(comparison: Comparison) -> Range | None:
    rows = comparison.rows + (comparison.with_beam.rows if comparison.with_beam else ())
    ends = [end for row in rows for end in (row.low, row.score, row.high) if math.isfinite(end)]
    if len(comparison.rows) == 1 or not ends or min(ends) == max(ends):
        return None
    return Range(min(ends), max(ends))


def _draw_interval(row: MethodRow, scale: Range, index: int) -> Markup:
    """Draw an interval as a line with a dot; the numbers beside it say the same in words."""
    width, middle = 96, 7
    if not all(math.isfinite(end) for end in (row.low, row.score, row.high)):
        return Markup("")
    low, score, high = (4 + scale.fraction(end) * (width - 8) for end in (row.low, row.score, row.high))
    line = element("line", {"x1": low, "y1": middle, "x2": high, "y2": middle, "stroke-width": 2})
    dot = element("circle", {"cx": score, "cy": middle, "r": 3.5})
    attributes = {"class": f"interval-drawing {style_of(index).classes}", "aria-hidden": "true"}
    return element("svg", {**attributes, "viewBox": f"0 0 {width} 14"}, line, dot)
