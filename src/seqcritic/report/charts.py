"""The charts: learning curves, dot plots, ablations, forecasts of a critic, and intervals in a table.

Methods are told apart by their labels as well as by colour and dash.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from markupsafe import Markup

from seqcritic.report.ablation import Ablation, AblationRow
from seqcritic.report.comparison import Curve, MethodRow, Point
from seqcritic.report.formats import format_compact
from seqcritic.report.scales import (
    Range,
    Series,
    compute_range,
    describe_outside,
    group_series,
    list_outside,
    log_ticks,
    nice_ticks,
    score_range,
    value_range,
)
from seqcritic.report.svg import (
    FAINT,
    GRID,
    LINE_HEIGHT,
    PALETTE,
    Attributes,
    Frame,
    Style,
    draw_dot,
    draw_line,
    draw_path,
    draw_svg,
    element,
    flow,
    join,
    shorten,
    spread,
    style_of,
    text,
    text_width,
    tick_width,
    trace,
    write_key,
    write_text,
)
from seqcritic.report.values import ValueTable, show_token

_MANY_POINTS = 30  # beyond which dots would hide the line
_ROW_HEIGHT = 24.0


def draw_curves(
    curves: Sequence[Curve],
    score_name: str,
    order: Sequence[str] = (),
    width: int = 960,
    height: int = 460,
    title: str = "",
    neighbours: Sequence[Curve] = (),
) -> Markup:
    """Draw all curves on one axis: thin lines for seeds, a bold one for the mean of a method.

    Labels named in `order` take the first styles, so that a table beside the drawing can share them.
    Labels stand beside the ends of their curves where there is room, otherwise beneath the drawing,
    which then grows in height. The vertical axis has the name "validation SCORE" unless a title is given.
    The axis of compute has room for its neighbours too, the curves of another drawing.
    """
    title = title or f"validation {score_name}"
    series = group_series(curves, order)
    # Labels without a curve take a style too: a row of the table beside the drawing keeps its colour.
    styles = {label: index for index, label in enumerate(dict.fromkeys([*order, *(one.label for one in series)]))}
    if not series:
        nothing = write_text("No learning curve was recorded.", width / 2, 40, "middle", "axis-title")
        return draw_svg(width, 80, f"{title}: no learning curve", [nothing])
    scores = score_range(series)
    labels = [shorten(one.label, width - 60) for one in series]
    longest = max(text_width(label) for label in labels)
    # Labels may take three tenths of the width, and no more lines than the chart is high.
    beside = longest + 58 <= 0.3 * width and len(labels) * LINE_HEIGHT <= height - 100
    ticks = nice_ticks(scores, 6)
    # On one scale with its neighbours, so that the same compute stands at the same place in both.
    computes = compute_range([*series, *group_series(neighbours)])
    right = width - (longest + 58 if beside else 16)
    frame = Frame(26 + tick_width(ticks), 34, right, height - 52, scores, computes)
    if beside:
        ends = [frame.clamp(frame.y(one.main[-1].score)) for one in series]
        places = [(frame.right + 48, y) for y in spread(ends, frame.bottom)]
        bottom: float = height
    else:
        places = flow(labels, width, height + 8)
        bottom = places[-1][1] + 14
    parts = [_draw_compute_axes(frame, ticks, title)]
    for one, label, place in zip(series, labels, places, strict=True):
        leads = _draw_leader(one, frame, place, style_of(styles[one.label])) if beside else []
        parts.append(_draw_series(one, style_of(styles[one.label]), frame, leads, label, place, score_name))
    if outside := list_outside(series, scores):
        for line in wrap(describe_outside(outside), int((width - frame.left) / 7.5)):
            parts.append(write_text(line, frame.left, bottom + 12, "start", "note"))
            bottom += LINE_HEIGHT
    return draw_svg(width, bottom, f"{title} against compute for {', '.join(labels)}", parts)


def _draw_compute_axes(frame: Frame, ticks: Sequence[float], title: str) -> Markup:
    parts = frame.draw_value_axis(ticks)
    for tick in nice_ticks(frame.across, max(round((frame.right - frame.left) / 110), 2)):
        x = frame.x(tick)
        parts.append(draw_line(x, frame.bottom, x, frame.bottom + 5, "axis", FAINT))
        parts.append(write_text(format_compact(tick), x, frame.bottom + 20, "middle", "tick"))
    parts.append(frame.draw_base())
    # The vertical title lies above its axis, where it reads without turning one's head.
    parts.append(write_text(title, 8, 16, "start", "axis-title"))
    middle = (frame.left + frame.right) / 2
    parts.append(write_text("compute (likelihood updates)", middle, frame.bottom + 42, "middle", "axis-title"))
    return element("g", {"class": "axes", "data-top": frame.top, "data-bottom": frame.bottom}, join(parts))


def _draw_series(
    one: Series,
    style: Style,
    frame: Frame,
    leads: Sequence[Markup],
    label: str,
    place: tuple[float, float],
    score_name: str,
) -> Markup:
    lines = [_draw_curve(curve.points, frame, "seed", style) for curve in one.seeds if one.mean]
    lines.append(_draw_curve(one.main, frame, "main", style))
    # A nested drawing cuts lines off at the edges without an id that must be unique in a page.
    x, y, width, height = frame.left - 3, frame.top, frame.right - frame.left + 6, frame.bottom - frame.top
    box: Attributes = {"x": x, "y": y, "width": width, "height": height, "overflow": "hidden"}
    parts = [element("svg", {**box, "viewBox": f"{x:g} {y:g} {width:g} {height:g}"}, join(lines))]
    named = [(f"seed {curve.seed}", "seed", curve.points) for curve in one.seeds] + [("mean", "mean", one.mean)]
    for name, role, points in named:
        told = f"{one.label}, {name}: {score_name}"
        parts += [_mark(point, frame, style.colour, told, one, role) for point in points]
    parts += [*leads, *write_key(label, *place, style.colour, style.dash)]
    return element("g", {"class": f"method {style.classes}", "data-label": one.label}, join(parts))


def _draw_leader(one: Series, frame: Frame, place: tuple[float, float], style: Style) -> list[Markup]:
    """Draw the line that leads from the end of a curve to its label."""
    x, y = frame.x(one.main[-1].compute), frame.clamp(frame.y(one.main[-1].score))
    path = f"M{x + 5:.1f} {y:.1f}H{frame.right + 8:.1f}L{place[0] - 26:.1f} {place[1]:.1f}"
    leader: Attributes = {"class": "leader", "d": path, "fill": "none", "stroke": style.colour}
    return [element("path", {**leader, "stroke-opacity": 0.6, "stroke-dasharray": "1 3"})]


def _draw_curve(points: Sequence[Point], frame: Frame, role: str, style: Style) -> Markup:
    is_main = role == "main"
    attributes: Attributes = {
        "class": f"curve {role}",
        "d": trace((frame.x(point.compute), frame.y(point.score)) for point in points),
        "fill": "none",
        "stroke": style.colour,
        "stroke-width": 2.5 if is_main else 1,
        "stroke-opacity": 1 if is_main else 0.4,
        "stroke-linejoin": "round",
        "stroke-linecap": "butt" if style.dash else "round",
    }
    return element("path", attributes | ({"stroke-dasharray": style.dash} if style.dash else {}))


def _mark(point: Point, frame: Frame, colour: str, told: str, one: Series, role: str) -> Markup:
    """Mark one validation; many of them are drawn transparent, there for the pointer only."""
    place = f"at {point.updates:,} updates, compute {point.compute:,.0f}"
    title = element("title", {}, text(f"{told} {point.score:.2f} {place}"))
    x = frame.x(point.compute)
    attributes: Attributes = {"class": f"point {role}", "fill": colour}
    is_main = role == "mean" or not one.mean
    if is_main:
        # The page's script reads its tooltips from these; the curve of a seed has none.
        attributes |= {"data-x": x, "data-compute": f"{point.compute:.0f}", "data-score": f"{point.score:.2f}"}
    if not frame.values.contains(point.score):
        is_above = point.score > frame.values.high
        tip = frame.top if is_above else frame.bottom
        base = tip + (9 if is_above else -9)
        shape = f"{trace([(x, tip), (x + 5, base), (x - 5, base)])}Z"
        return element("path", {**attributes, "class": f"point {role} outside", "d": shape}, title)
    is_visible = is_main and len(one.main) <= _MANY_POINTS
    attributes |= {"cx": x, "cy": frame.y(point.score), "r": 3.2 if is_visible else 5}
    if not is_visible:
        attributes["fill-opacity"] = 0
    return element("circle", attributes, title)


@dataclass(frozen=True, slots=True)
class Dot:
    """A value between two bounds; what is not finite is not drawn, and bounds that are not finite are left away."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class DotLine:
    """One dot for each case, under a label, in a colour of the palette by its place there."""

    label: str
    dots: tuple[Dot, ...]
    colour: int = 0


def draw_dot_plot(
    cases: Sequence[str],
    lines: Sequence[DotLine],
    title: str,
    case_title: str = "",
    logarithmic: bool = False,
    width: int = 960,
    height: int = 340,
) -> Markup:
    """Draw the lines over the cases; values that a logarithmic axis cannot hold are left out."""
    drawn = _dot_range(lines, logarithmic)
    ticks = log_ticks(drawn) if logarithmic else nice_ticks(drawn, 6)
    names = [shorten(name, 220) for name in cases]
    longest = max(map(text_width, names))
    is_slanted = longest > (width - 90) / len(cases)
    frame = Frame(26 + tick_width(ticks), 34, width - 16, height, drawn, Range(0, len(cases)), logarithmic)
    parts = [write_text(title, 8, 16, "start", "axis-title"), *frame.draw_value_axis(ticks), frame.draw_base()]
    for index, name in enumerate(names):
        x, anchor = frame.x(index + 0.5), "end" if is_slanted else "middle"
        parts.append(write_text(name, x, height + (14 if is_slanted else 20), anchor, "tick", -40 if is_slanted else 0))
    bottom = height + 16 + (0.75 * longest if is_slanted else 12)
    if case_title:
        bottom += 20
        parts.append(write_text(case_title, (frame.left + frame.right) / 2, bottom, "middle", "axis-title"))
    places = flow([line.label for line in lines], width, bottom + 26)
    parts += [_draw_dot_line(line, frame, place) for line, place in zip(lines, places, strict=True)]
    return draw_svg(width, places[-1][1] + 16, f"{title}: {', '.join(line.label for line in lines)}", parts)


def _draw_dot_line(line: DotLine, frame: Frame, place: tuple[float, float]) -> Markup:
    colour = PALETTE[line.colour]
    shown = [
        (frame.x(index + 0.5), frame.y(dot.value), dot)
        for index, dot in enumerate(line.dots)
        if _can_show(dot.value, frame.logarithmic)
    ]
    parts = [draw_path([(x, y) for x, y, _ in shown], "main", colour, 2)] if len(shown) > 1 else []
    for x, y, dot in shown:
        if math.isfinite(dot.low) and math.isfinite(dot.high):
            # A lower bound of 0 or less has no place on a logarithmic axis: the line goes down to the base.
            low = frame.clamp(frame.y(dot.low)) if _can_show(dot.low, frame.logarithmic) else frame.bottom
            parts.append(draw_line(x, low, x, frame.clamp(frame.y(dot.high)), "curve bound", colour, 1.5))
        parts.append(draw_dot(x, y, 4, colour, f"{line.label}: {dot.value:.4g}"))
    parts += write_key(line.label, *place, colour)
    return element("g", {"class": f"method method-{line.colour}", "data-label": line.label}, join(parts))


def _can_show(value: float, logarithmic: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not logarithmic)


def _dot_range(lines: Sequence[DotLine], logarithmic: bool) -> Range:
    """Choose what is drawn: all values, and their bounds as far as they do not squeeze the values."""

    def list_places(values: Sequence[float]) -> list[float]:
        shown = [value for value in values if _can_show(value, logarithmic)]
        return [math.log10(value) for value in shown] if logarithmic else shown

    dots = [dot for line in lines for dot in line.dots if _can_show(dot.value, logarithmic)]
    if not dots:
        return Range(0, 1)
    values = list_places([dot.value for dot in dots])
    low, high = min(values), max(values)
    # As far again as the values themselves reach; equal values get a factor of two, or a tenth of their size.
    reach = max(high - low, 0.3 if logarithmic else 0.1 * abs(high) or 1.0)
    ends = list_places([end for dot in dots for end in (dot.low, dot.high)])
    low = min([low, *(end for end in ends if end >= low - reach)])
    high = max([high, *(end for end in ends if end <= high + reach)])
    margin = 0.06 * max(high - low, reach)
    return Range(low - margin, high + margin)


def draw_ablation(ablation: Ablation, width: int = 960) -> Markup:
    """Draw each row's change against the baseline: ours, with a small dot for each seed, and the paper's beside it."""
    rows = ablation.rows
    left = 20 + max(text_width(row.name) for row in rows)
    middle = (left + width) / 2
    top, bottom = 50.0, 50.0 + _ROW_HEIGHT * len(rows)
    ours = [[ablation.gain(score) for score in (row.score, *row.seed_scores)] for row in rows]
    theirs = [[ablation.paper_gain(row)] for row in rows]
    parts = [write_text(row.name, left - 10, _row_y(index) + 4.5, "end", "tick") for index, row in enumerate(rows)]
    title = f"validation {ablation.score_name}, % better than the baseline"
    parts += _draw_changes(rows, ours, (left, top, middle - 20, bottom), title, 0)
    parts += _draw_changes(rows, theirs, (middle + 20, top, width - 20, bottom), "the paper's BLEU, the same", 1)
    return draw_svg(width, bottom + 36, f"ablation of {ablation.title}: change of each row against the baseline", parts)


def _draw_changes(
    rows: Sequence[AblationRow],
    changes: Sequence[Sequence[float]],
    box: tuple[float, float, float, float],
    title: str,
    colour_index: int,
) -> list[Markup]:
    """Draw one dot a row, the first of its values, joined to the baseline by a line; further values are small dots."""
    values = [[value for value in found if math.isfinite(value)] for found in changes]
    # The baseline is always drawn, being what all lines begin at.
    flat = [0.0, *(value for found in values for value in found)]
    margin = 0.08 * (max(flat) - min(flat)) or 1.0
    frame = Frame(*box, values=Range(0, 1), across=Range(min(flat) - margin, max(flat) + margin))
    colour, zero = PALETTE[colour_index], frame.x(0)
    parts = [write_text(title, frame.left, 24, "start", "axis-title")]
    for tick in nice_ticks(frame.across, 5):
        x = frame.x(tick)
        parts.append(draw_line(x, frame.top, x, frame.bottom, "grid", GRID))
        parts.append(write_text(format_compact(tick), x, frame.bottom + 20, "middle", "tick"))
    parts.append(draw_line(zero, frame.top, zero, frame.bottom, "axis", FAINT))
    dots = []
    for index, (row, found) in enumerate(zip(rows, values, strict=True)):
        y = _row_y(index)
        if not found:
            dots.append(write_text("diverged", zero - 6, y + 4.5, "end", "note"))
            continue
        dots.append(draw_line(zero, y, frame.x(found[0]), y, "curve", colour, 2))
        # The mean last, on top of the seeds.
        for value, radius in [*((value, 2.5) for value in found[1:]), (found[0], 4.5)]:
            dots.append(draw_dot(frame.x(value), y, radius, colour, f"{row.name}: {value:+.2f} %"))
    return [*parts, element("g", {"class": f"method method-{colour_index}"}, join(dots))]


def _row_y(index: int) -> float:
    return 50.0 + (index + 0.5) * _ROW_HEIGHT


def draw_forecast(table: ValueTable, summaries: Sequence[str], width: int = 960, height: int = 330) -> Markup:
    """Draw forecast, truth and rewards over the steps of a prediction; the chosen tokens stand beneath."""
    values = [step.value for step in table.steps]
    drawn = value_range([*values, *(step.reward for step in table.steps), *table.collected, *table.remaining])
    names = [shorten(show_token(step.token), 96) for step in table.steps]
    longest = max(text_width(name) for name in names)
    # One character is 8 wide: the tokens of a model that spells stand upright.
    is_slanted = longest >= 12
    ticks = nice_ticks(drawn, 6)
    bottom = height - (14 + 0.8 * longest if is_slanted else 30)
    frame = Frame(20 + tick_width(ticks), 14, width - 8, bottom, drawn, Range(0, len(names)))
    parts = frame.draw_value_axis(ticks, marks_zero=True)
    for index, (step, summary) in enumerate(zip(table.steps, summaries, strict=True)):
        parts.append(_draw_column(index, step.reward, summary, frame))
    # As many tokens as have room.
    for index in range(0, len(names), math.ceil((15 if is_slanted else 10) * len(names) / (frame.right - frame.left))):
        x = frame.x(index + 0.5)
        if is_slanted:
            # A slanted name reaches to the left of its step, which the first ones have little room for.
            parts.append(write_text(shorten(names[index], x / 0.8), x, bottom + 12, "end", "tick", -50))
        else:
            parts.append(write_text(names[index], x, bottom + 20, "middle", "tick"))
    # Forecast last, above what it is compared with.
    for style, dash, line in ((5, "6 4", table.remaining), (2, "", table.collected), (1, "", values)):
        places = [(frame.x(index + 0.5), frame.y(y)) for index, y in enumerate(line) if math.isfinite(y)]
        dots = [] if dash else [draw_dot(x, y, 3, PALETTE[style]) for x, y in places]
        path = draw_path(places, "main", PALETTE[style], 2.2, dash)
        parts.append(element("g", {"class": f"method method-{style}"}, path, *dots))
    told = "value of the chosen token, rewards still to come and rewards collected, at each step"
    return draw_svg(width, height, told, parts)


def _draw_column(index: int, reward: float, summary: str, frame: Frame) -> Markup:
    """Draw one step's reward, and the ground by which the pointer finds the step."""
    left, right = frame.x(index), frame.x(index + 1)
    ground: Attributes = {"class": "ground", "x": left, "width": right - left, "y": frame.top}
    parts = [element("rect", {**ground, "height": frame.bottom - frame.top})]
    if math.isfinite(reward):
        top, bottom = frame.y(max(reward, 0)), frame.y(min(reward, 0))
        bar: Attributes = {"class": "reward", "x": frame.x(index + 0.22), "width": 0.56 * (right - left), "y": top}
        parts.append(element("rect", {**bar, "height": bottom - top}))
    return element("g", {"class": "column", "data-step": str(index)}, element("title", {}, text(summary)), *parts)


def draw_interval(row: MethodRow, scale: Range, style: Style) -> Markup:
    """Draw an interval as a line with a dot; the numbers beside it say the same in words."""
    if not all(math.isfinite(end) for end in (row.low, row.score, row.high)):
        return Markup("")
    low, score, high = (4 + scale.fraction(end) * 88 for end in (row.low, row.score, row.high))
    line = element("line", {"x1": low, "y1": 7, "x2": high, "y2": 7, "stroke-width": 2})
    dot = element("circle", {"cx": score, "cy": 7, "r": 3.5})
    attributes = {"class": f"interval-drawing {style.classes}", "aria-hidden": "true", "viewBox": "0 0 96 14"}
    return element("svg", attributes, line, dot)
