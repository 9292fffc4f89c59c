"""Learning curves of several methods in one drawing.

The SVG stands alone: its colours are presentation attributes on a white ground, which the style sheet
of the page overrides for dark screens. Methods are told apart by their labels as well as by colour and dash.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from seqcritic.report.comparison import Curve, Point
from seqcritic.report.drawing import FAINT, GRID, INK, draw_line, draw_svg, style_of, write_text
from seqcritic.report.formats import format_compact
from seqcritic.report.frame import Frame
from seqcritic.report.labels import LINE_HEIGHT, flow, shorten, spread, text_width
from seqcritic.report.markup import Attributes, Markup, element, join, text
from seqcritic.report.scales import (
    Range,
    Series,
    compute_range,
    describe_outside,
    group_series,
    list_outside,
    nice_ticks,
    score_range,
)
from seqcritic.report.terminal import terminal_plot

__all__ = ["draw_curves", "terminal_plot"]

_MANY_POINTS = 30


@dataclass(frozen=True, slots=True)
class _ComputeFrame(Frame):
    """The rectangle curves are drawn in: compute against scores."""

    computes: Range

    def x(self, compute: float) -> float:
        return self.left + self.computes.fraction(compute) * (self.right - self.left)


@dataclass(frozen=True, slots=True)
class _Label:
    """What names a method, where it stands, and whether a line leads to it from the end of the curve."""

    content: str
    x: float
    y: float
    is_beside: bool


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
    styles = {label: index for index, label in enumerate(dict.fromkeys([*order, *(one.label for one in series)]))}
    if not series:
        nothing = write_text("No learning curve was recorded.", width / 2, 40, "middle", "axis-title")
        return draw_svg(width, 80, f"{title}: no learning curve", [nothing])
    scores = score_range(series)
    outside = list_outside(series, scores)
    labels = [shorten(one.label, width - 60) for one in series]
    longest = max(text_width(label) for label in labels)
    beside = longest + 58 <= 0.3 * width and len(labels) * LINE_HEIGHT <= height - 100
    frame = _ComputeFrame(
        left=26 + max(text_width(format_compact(tick)) for tick in nice_ticks(scores, 6)),
        top=34,
        right=width - (longest + 58 if beside else 16),
        bottom=height - 52,
        values=scores,
        computes=compute_range([*series, *group_series(neighbours)]),
    )
    if beside:
        ends = [frame.y(scores.clamp(one.main[-1].score)) for one in series]
        places = [(frame.right + 48, y) for y in spread(ends, frame.bottom)]
        bottom: float = height
    else:
        places = flow(labels, width, height + 8)
        bottom = places[-1][1] + 14
    parts = [_draw_axes(frame, title)]
    for one, content, (x, y) in zip(series, labels, places, strict=True):
        label = _Label(content, x, y, beside)
        parts.append(_draw_series(one, styles[one.label], frame, label, score_name))
    if outside:
        for line in wrap(describe_outside(outside), int((width - frame.left) / 7.5)):
            parts.append(write_text(line, frame.left, bottom + 12, "start", "note"))
            bottom += LINE_HEIGHT
    return draw_svg(width, bottom, f"{title} against compute for {', '.join(labels)}", parts)


def _draw_axes(frame: _ComputeFrame, title: str) -> Markup:
    parts = []
    for tick in nice_ticks(frame.values, 6):
        y = frame.y(tick)
        parts.append(draw_line(frame.left, y, frame.right, y, "grid", GRID))
        parts.append(write_text(format_compact(tick), frame.left - 8, y + 4.5, "end", "tick"))
    for tick in nice_ticks(frame.computes, max(round((frame.right - frame.left) / 110), 2)):
        x = frame.x(tick)
        parts.append(draw_line(x, frame.bottom, x, frame.bottom + 5, "axis", FAINT))
        parts.append(write_text(format_compact(tick), x, frame.bottom + 20, "middle", "tick"))
    parts.append(draw_line(frame.left, frame.bottom, frame.right, frame.bottom, "axis", FAINT))
    # The vertical title lies above its axis, where it reads without turning one's head.
    parts.append(write_text(title, 8, 16, "start", "axis-title"))
    middle = (frame.left + frame.right) / 2
    parts.append(write_text("compute (likelihood updates)", middle, frame.bottom + 42, "middle", "axis-title"))
    return element("g", {"class": "axes", "data-top": frame.top, "data-bottom": frame.bottom}, join(parts))


def _draw_series(one: Series, index: int, frame: _ComputeFrame, label: _Label, score_name: str) -> Markup:
    colour, dash, classes = style_of(index)
    lines = [_path(curve.points, frame, "seed", colour, dash) for curve in one.seeds if one.mean]
    lines.append(_path(one.main, frame, "main", colour, dash))
    parts = [_clip(lines, frame)]
    for curve in one.seeds:
        name = f"{one.label}, seed {curve.seed}"
        parts += [_mark(point, frame, colour, name, score_name, one, "seed") for point in curve.points]
    parts += [_mark(point, frame, colour, f"{one.label}, mean", score_name, one, "mean") for point in one.mean]
    x, y = label.x, label.y
    if label.is_beside:
        end = one.main[-1]
        start = f"M{frame.x(end.compute) + 5:.1f} {frame.y(frame.values.clamp(end.score)):.1f}"
        leader: Attributes = {"class": "leader", "d": f"{start}H{frame.right + 8:.1f}L{x - 26:.1f} {y:.1f}"}
        leader |= {"fill": "none", "stroke": colour, "stroke-opacity": 0.6, "stroke-dasharray": "1 3"}
        parts.append(element("path", leader))
    parts.append(draw_line(x - 24, y, x - 6, y, "key-line", colour, 3, dash))
    writing: Attributes = {"class": "label", "x": x, "y": y + 4.5, "fill": INK, "font-weight": "600"}
    parts.append(element("text", writing, text(label.content)))
    return element("g", {"class": f"method {classes}", "data-label": one.label}, join(parts))


def _path(points: Sequence[Point], frame: _ComputeFrame, role: str, colour: str, dash: str) -> Markup:
    places = (f"{frame.x(point.compute):.1f} {frame.y(point.score):.1f}" for point in points)
    attributes: Attributes = {
        "class": f"curve {role}",
        "d": "M" + "L".join(places),
        "fill": "none",
        "stroke": colour,
        "stroke-width": 2.5 if role == "main" else 1,
        "stroke-opacity": 1 if role == "main" else 0.4,
        "stroke-linejoin": "round",
        "stroke-linecap": "butt" if dash else "round",
    }
    if dash:
        attributes["stroke-dasharray"] = dash
    return element("path", attributes)


def _clip(lines: Sequence[Markup], frame: _ComputeFrame) -> Markup:
    """Cut lines off at the edges; a nested drawing does so without an id that must be unique in a page."""
    x, y, width, height = frame.left - 3, frame.top, frame.right - frame.left + 6, frame.bottom - frame.top
    box: Attributes = {"x": x, "y": y, "width": width, "height": height, "overflow": "hidden"}
    return element("svg", {**box, "viewBox": f"{x:g} {y:g} {width:g} {height:g}"}, join(lines))


def _mark(
    point: Point, frame: _ComputeFrame, colour: str, name: str, score_name: str, one: Series, role: str
) -> Markup:
    """Mark one validation; many of them are drawn transparent, there for the pointer only."""
    place = f"at {point.updates:,} updates, compute {point.compute:,.0f}"
    title = element("title", {}, text(f"{name}: {score_name} {point.score:.2f} {place}"))
    x = frame.x(point.compute)
    attributes: Attributes = {"class": f"point {role}", "fill": colour}
    is_main = role == "mean" or not one.mean
    if is_main:
        attributes |= {
            "data-x": x,
            "data-compute": f"{point.compute:.0f}",
            "data-score": f"{point.score:.2f}",
        }
    if not frame.values.contains(point.score):
        is_above = point.score > frame.values.high
        tip = frame.top if is_above else frame.bottom
        base = tip + (9 if is_above else -9)
        shape = f"M{x:.1f} {tip:.1f}L{x + 5:.1f} {base:.1f}L{x - 5:.1f} {base:.1f}Z"
        return element("path", {**attributes, "class": f"point {role} outside", "d": shape}, title)
    is_visible = is_main and len(one.main) <= _MANY_POINTS
    attributes |= {"cx": x, "cy": frame.y(point.score), "r": 3.2 if is_visible else 5}
    if not is_visible:
        attributes["fill-opacity"] = 0
    return element("circle", attributes, title)
