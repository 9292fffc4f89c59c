"""What every drawing is made of. It stands alone: colours are attributes, which the page's style sheet overrides."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from seqcritic.report.comparison import MethodRow
from seqcritic.report.markup import Attributes, Markup, element, join, text
from seqcritic.report.scales import Range

# Chosen so that any two differ for readers with each kind of colour blindness, at contrast 3 on white.
PALETTE = ("#2448c8", "#e25a0a", "#00957f", "#b56ad0", "#7b3f20", "#3f4450")
# Beyond the palette, colours come again with another dash: every method of a comparison of all has a style of its own.
DASHES = ("", "8 4", "2 3", "12 3 2 3", "3 8")
INK, FAINT, GRID = "#22262c", "#5c6470", "#e3e6ea"
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"


class Style(NamedTuple):
    """How one method looks in every drawing and beside its name: a colour on white, a dash, and names of both."""

    colour: str
    dash: str
    classes: str  # by which the style sheet gives the same, for light and dark screens


def style_of(index: int) -> Style:
    """Return the style of the method at a place; they repeat after all dashes of all colours."""
    colour, dash = index % len(PALETTE), index // len(PALETTE) % len(DASHES)
    return Style(PALETTE[colour], DASHES[dash], f"method-{colour}" + (f" dash-{dash}" if dash else ""))


def draw_svg(width: float, height: float, description: str, parts: Sequence[Markup]) -> Markup:
    """Put parts, one above the other, into a drawing that says what it shows."""
    attributes: Attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "curves",
        "viewBox": f"0 0 {width:g} {height:g}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-label": description,
        "font-family": _FONT,
        "font-size": 13,
    }
    ground = element("rect", {"class": "ground", "width": width, "height": height, "fill": "#ffffff"})
    return element("svg", attributes, Markup("\n"), join([ground, *parts]), Markup("\n"))


def draw_line(
    x1: float, y1: float, x2: float, y2: float, role: str, colour: str, width: float = 1, dash: str = ""
) -> Markup:
    """Draw a straight line."""
    attributes: Attributes = {"class": role, "x1": x1, "y1": y1, "x2": x2, "y2": y2}
    attributes |= {"stroke": colour, "stroke-width": width}
    if dash:
        attributes["stroke-dasharray"] = dash
    return element("line", attributes)


def write_text(content: str, x: float, y: float, anchor: str, role: str) -> Markup:
    """Write a few words."""
    colour = INK if role == "axis-title" else FAINT
    attributes: Attributes = {"class": role, "x": x, "y": y, "text-anchor": anchor, "fill": colour}
    return element("text", attributes, text(content))


def draw_interval(row: MethodRow, scale: Range, style: Style) -> Markup:
    """Draw an interval as a line with a dot; the numbers beside it say the same in words."""
    width, middle = 96, 7
    if not all(math.isfinite(end) for end in (row.low, row.score, row.high)):
        return Markup("")
    low, score, high = (4 + scale.fraction(end) * (width - 8) for end in (row.low, row.score, row.high))
    line = element("line", {"x1": low, "y1": middle, "x2": high, "y2": middle, "stroke-width": 2})
    dot = element("circle", {"cx": score, "cy": middle, "r": 3.5})
    attributes = {"class": f"interval-drawing {style.classes}", "aria-hidden": "true"}
    return element("svg", {**attributes, "viewBox": f"0 0 {width} 14"}, line, dot)
