"""What every drawing is made of: escaped elements, the styles of methods, places for labels, and a frame with axes.

A drawing stands alone: its colours are attributes on a white ground, which the page's style sheet overrides for dark
screens.
"""

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from unicodedata import east_asian_width

from markupsafe import Markup

from seqcritic.report.formats import format_compact
from seqcritic.report.scales import Range

Attributes: TypeAlias = dict[str, str | float]

# Chosen so that any two differ for readers with each kind of colour blindness, at contrast 3 on white.
PALETTE = ("#2448c8", "#e25a0a", "#00957f", "#b56ad0", "#7b3f20", "#3f4450")
# Beyond the palette, colours come again with another dash: every method of a comparison of all has a style of its own.
DASHES = ("", "8 4", "2 3", "12 3 2 3", "3 8", "16 6")
INK, FAINT, GRID = "#22262c", "#5c6470", "#e3e6ea"
LINE_HEIGHT = 18.0
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
# XML forbids these characters, and lone surrogates cannot be written as UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def replace_forbidden(content: str) -> str:
    """Replace what neither XML nor UTF-8 can hold; markup, which holds none, stays markup."""
    return content if isinstance(content, Markup) else _FORBIDDEN.sub("\ufffd", content)


def text(content: str) -> Markup:
    """Escape plain text, so that it can never be read as markup."""
    return Markup(html.escape(replace_forbidden(content)))


def element(name: str, attributes: Mapping[str, str | float], *children: Markup) -> Markup:
    """Build one element; attribute values are escaped and numbers rounded to what a screen can show."""
    written = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{''.join(children)}</{name}>")


def join(children: Iterable[Markup]) -> Markup:
    """Put pieces of markup on lines of their own."""
    return Markup("\n".join(children))


def _attribute(value: str | float) -> str:
    return text(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


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
    # White of its own: as a file the drawing may be shown on any ground.
    ground = element("rect", {"class": "ground", "width": width, "height": height, "fill": "#ffffff"})
    return element("svg", attributes, Markup("\n"), join([ground, *parts]), Markup("\n"))


def draw_line(
    x1: float, y1: float, x2: float, y2: float, role: str, colour: str, width: float = 1, dash: str = ""
) -> Markup:
    """Draw a straight line."""
    attributes: Attributes = {"class": role, "x1": x1, "y1": y1, "x2": x2, "y2": y2}
    attributes |= {"stroke": colour, "stroke-width": width}
    return element("line", attributes | ({"stroke-dasharray": dash} if dash else {}))


def draw_path(places: Iterable[tuple[float, float]], role: str, colour: str, width: float, dash: str = "") -> Markup:
    """Draw a line through places."""
    path: Attributes = {"class": f"curve {role}", "d": trace(places), "fill": "none", "stroke": colour}
    path |= {"stroke-width": width, "stroke-linejoin": "round"}
    return element("path", path | ({"stroke-dasharray": dash} if dash else {}))


def trace(places: Iterable[tuple[float, float]]) -> str:
    """Write a line through places as the data of a path."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def draw_dot(x: float, y: float, radius: float, colour: str, title: str = "") -> Markup:
    """Draw a dot that tells its title to the pointer."""
    told = [element("title", {}, text(title))] if title else []
    return element("circle", {"class": "point", "cx": x, "cy": y, "r": radius, "fill": colour}, *told)


def write_text(content: str, x: float, y: float, anchor: str, role: str, slant: int = 0) -> Markup:
    """Write a few words, turned by some degrees."""
    colour = INK if role == "axis-title" else FAINT
    attributes: Attributes = {"class": role, "x": x, "y": y, "text-anchor": anchor, "fill": colour}
    if slant:
        attributes["transform"] = f"rotate({slant} {x:.1f} {y:.1f})"
    return element("text", attributes, text(content))


def write_key(content: str, x: float, y: float, colour: str, dash: str = "") -> list[Markup]:
    """Write what a line stands for, after a short piece of it."""
    label: Attributes = {"class": "label", "x": x, "y": y + 4.5, "fill": INK, "font-weight": "600"}
    return [draw_line(x - 24, y, x - 6, y, "key-line", colour, 3, dash), element("text", label, text(content))]


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle of a chart, and the ranges that its height and its width stand for.

    On a logarithmic axis the range of values is that of their exponents.
    """

    left: float
    top: float
    right: float
    bottom: float
    values: Range
    across: Range = Range(0, 1)  # noqa: RUF009 (a range cannot be changed)
    logarithmic: bool = False

    def x(self, value: float) -> float:
        """Return where along the width something is drawn."""
        return self.left + self.across.fraction(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the height at which a value is drawn."""
        place = math.log10(value) if self.logarithmic else value
        return self.bottom - self.values.fraction(place) * (self.bottom - self.top)

    def clamp(self, y: float) -> float:
        """Move a height to the nearest one within the frame."""
        return min(max(y, self.top), self.bottom)

    def draw_value_axis(self, ticks: Sequence[float], marks_zero: bool = False) -> list[Markup]:
        """Draw a line across at each tick, with its value beside it."""
        parts = []
        for tick in ticks:
            role, colour = ("axis", FAINT) if marks_zero and tick == 0 else ("grid", GRID)
            parts.append(draw_line(self.left, self.y(tick), self.right, self.y(tick), role, colour))
            parts.append(write_text(format_compact(tick), self.left - 8, self.y(tick) + 4.5, "end", "tick"))
        return parts

    def draw_base(self) -> Markup:
        """Draw the line that the chart stands on."""
        return draw_line(self.left, self.bottom, self.right, self.bottom, "axis", FAINT)


def tick_width(ticks: Sequence[float]) -> float:
    """Return the width that the values beside an axis need."""
    return max(text_width(format_compact(tick)) for tick in ticks)


def spread(wanted: Sequence[float], bottom: float) -> list[float]:
    """Keep every height near the one wanted for it, a line from the others and none beneath `bottom`."""
    # Twice through the ranks: down, each a line below the one before, then up, so that none hangs out beneath.
    ranks = sorted(range(len(wanted)), key=lambda index: wanted[index])
    heights = [0.0] * len(wanted)
    floor = -math.inf
    for index in ranks:
        heights[index] = max(wanted[index], floor)
        floor = heights[index] + LINE_HEIGHT
    ceiling = bottom
    for index in reversed(ranks):
        heights[index] = min(heights[index], ceiling)
        ceiling = heights[index] - LINE_HEIGHT
    return heights


def flow(labels: Sequence[str], width: float, top: float) -> list[tuple[float, float]]:
    """Set labels in lines of some width, leaving room before each for a short piece of its curve."""
    indent, gap = 40.0, 50.0
    places = []
    x, y = indent, top
    for label in labels:
        needed = text_width(label) + gap
        # A label wider than a line stands alone on one rather than leaving an empty one above it.
        if x > indent and x + needed - indent > width:
            x, y = indent, y + LINE_HEIGHT + 2
        places.append((x, y))
        x += needed
    return places


def shorten(label: str, room: float) -> str:
    """Cut a label that is wider than there is room for."""
    if text_width(label) <= room:
        return label
    kept = label
    while kept and text_width(f"{kept}…") > room:
        kept = kept[:-1]
    return f"{kept}…"


def text_width(content: str) -> float:
    """Estimate the width of a label on the large side, for no font is at hand to measure it."""
    return sum(15.0 if east_asian_width(character) in "WF" else 8.0 for character in content)
