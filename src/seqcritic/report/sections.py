"""The sections of the page about the methods: table, curves, configuration and environment."""

import math

from seqcritic.report.comparison import Comparison, MethodRow
from seqcritic.report.curves import PALETTE, draw_curves
from seqcritic.report.formats import format_score
from seqcritic.report.markup import Markup, element, join, text
from seqcritic.report.scales import Range
from seqcritic.report.tables import list_columns

_COST_NOTE = (
    "Compute is counted in likelihood updates: an update that costs 3× takes as much work as three updates "
    "of likelihood training for the same model. Minutes are measured wall-clock time."
)


def render_table(comparison: Comparison) -> Markup:
    """Render the comparison with a small drawing of each interval, on one scale for all rows."""
    # Scores by seed would make a wide column; they stand beneath the label instead.
    columns = [column for column in list_columns(comparison) if column.name != "seeds"]
    headings = [element("th", {"scope": "col", "class": column.name}, text(column.heading)) for column in columns]
    scale = _interval_scale(comparison)
    best_labels = {row.label for row in comparison.best_rows}
    lines = []
    for index, row in enumerate(comparison.rows):
        cells = []
        for column in columns:
            content = text(column.cells[index])
            if column.name == "method":
                content = join([_swatch(index), content, _list_seeds(row)], "")
                cells.append(element("th", {"scope": "row", "class": "method"}, content))
                continue
            if column.name == "score" and row.label in best_labels:
                content = element("strong", {}, content)
            if column.name == "interval" and scale is not None:
                content = join([_draw_interval(row, scale, index), element("span", {}, content)], "")
            cells.append(element("td", {"class": column.name, "data-heading": column.heading}, content))
        lines.append(element("tr", {"data-label": row.label}, *cells))
    head = element("thead", {}, element("tr", {}, *headings))
    body = element("tbody", {}, Markup("\n"), join(lines), Markup("\n"))
    return element(
        "section",
        {"id": "results"},
        element("h2", {}, text("Test results")),
        element("div", {"class": "scroll"}, element("table", {"class": "results"}, head, body)),
        _signature(comparison),
        element("p", {"class": "remark"}, text(_COST_NOTE)),
    )


def render_curves(comparison: Comparison) -> Markup:
    """Render the learning curves in two widths, of which the style sheet shows the one that fits."""
    order = comparison.labels
    wide = draw_curves(comparison.curves, comparison.score_name, order)
    narrow = draw_curves(comparison.curves, comparison.score_name, order, width=420, height=340)
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
    parts = [element("div", attributes, *buttons)] if len(buttons) > 1 else []
    parts += [element("div", {"class": "wide"}, wide), element("div", {"class": "narrow"}, narrow)]
    return element(
        "section",
        {"id": "curves"},
        element("h2", {}, text("Learning curves")),
        element("figure", {}, join(parts)),
        _signature(comparison),
    )


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


def _list_seeds(row: MethodRow) -> Markup:
    if len(row.seed_scores) < 2:
        return Markup("")
    scores = ", ".join(format_score(score) for score in row.seed_scores)
    return element("span", {"class": "seeds"}, text(f"by seed {scores}"))


def _signature(comparison: Comparison) -> Markup:
    content = (text(f"{comparison.score_name} signature: "), element("code", {}, text(comparison.signature)))
    return element("p", {"class": "signature"}, *content)


def _swatch(index: int) -> Markup:
    return element("span", {"class": f"swatch method-{index % len(PALETTE)}", "aria-hidden": "true"})


def _interval_scale(comparison: Comparison) -> Range | None:
    ends = [end for row in comparison.rows for end in (row.low, row.score, row.high) if math.isfinite(end)]
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
    attributes = {"class": f"interval-drawing method-{index % len(PALETTE)}", "aria-hidden": "true"}
    return element("svg", {**attributes, "viewBox": f"0 0 {width} 14"}, line, dot)
