"""The sections of the page about the methods: table, curves, configuration and environment."""

import math

from seqcritic.report.comparison import Comparison, MethodRow
from seqcritic.report.curves import PALETTE, draw_curves
from seqcritic.report.formats import format_score
from seqcritic.report.markup import Markup, element, join, text
from seqcritic.report.scales import Range
from seqcritic.report.tables import list_best, list_columns, list_signatures, name_beam

_COST_NOTE = (
    "Compute is counted in likelihood updates: an update that costs 3× takes as much work as three updates "
    "of likelihood training for the same model. Minutes are measured wall-clock time."
)


def render_table(comparison: Comparison) -> Markup:
    """Render the comparison with a small drawing of each interval, on one scale for all rows."""
    # Scores by seed would make a wide column; they stand beneath the label instead.
    columns = [column for column in list_columns(comparison) if column.name not in ("seeds", "beam-seeds")]
    headings = [element("th", {"scope": "col", "class": column.name}, text(column.heading)) for column in columns]
    scale = _interval_scale(comparison)
    best = list_best(comparison)
    with_beam = comparison.with_beam
    lines = []
    for index, row in enumerate(comparison.rows):
        cells = []
        for column in columns:
            content = text(column.cells[index])
            if column.name == "method":
                content = join([_swatch(index), content, _list_seeds(row)], "")
                cells.append(element("th", {"scope": "row", "class": "method"}, content))
                continue
            if (column.name, row.label) in best:
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
        _signatures(comparison),
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
        _signatures(comparison),
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
    searches = [("by seed", row.seed_scores)]
    if row.beam is not None:
        searches.append((name_beam(row), row.beam.seed_scores))
    return join(
        [
            element("span", {"class": "seeds"}, text(f"{name} {', '.join(format_score(score) for score in scores)}"))
            for name, scores in searches
        ],
        "",
    )


def _signatures(comparison: Comparison) -> Markup:
    return join(
        [
            element("p", {"class": "signature"}, text(f"{name}: "), element("code", {}, text(signature)))
            for name, signature in list_signatures(comparison)
        ]
    )


def _swatch(index: int) -> Markup:
    return element("span", {"class": f"swatch method-{index % len(PALETTE)}", "aria-hidden": "true"})


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
    attributes = {"class": f"interval-drawing method-{index % len(PALETTE)}", "aria-hidden": "true"}
    return element("svg", {**attributes, "viewBox": f"0 0 {width} 14"}, line, dot)
