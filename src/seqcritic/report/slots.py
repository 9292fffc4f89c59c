"""A chart with a slot for each case and a line for each kind of thing measured in it, with its uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seqcritic.report.drawing import FAINT, GRID, INK, PALETTE, draw_line, draw_svg, write_text
from seqcritic.report.formats import format_compact
from seqcritic.report.frame import Frame
from seqcritic.report.labels import flow, shorten, text_width
from seqcritic.report.markup import Attributes, Markup, element, join, text
from seqcritic.report.scales import Range, nice_ticks


@dataclass(frozen=True, slots=True)
class Dot:
    """A value between two bounds; what is not finite is not drawn, and bounds that are not finite are left away."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class SlotLine:
    """One dot for each slot, under a label, in a colour of the palette by its place there."""

    label: str
    dots: tuple[Dot, ...]
    colour: int = 0


@dataclass(frozen=True, slots=True)
class _SlotFrame(Frame):
    """The rectangle of the chart; on a logarithmic axis the range is that of the exponents."""

    num_slots: int
    logarithmic: bool

    def x(self, slot: int) -> float:
        return self.left + (slot + 0.5) * (self.right - self.left) / self.num_slots

    def height_of(self, value: float) -> float:
        return self.y(self.values.clamp(_place(value, self.logarithmic)))


def draw_slots(
    slots: Sequence[str],
    lines: Sequence[SlotLine],
    title: str,
    slot_title: str = "",
    logarithmic: bool = False,
    width: int = 960,
    height: int = 340,
) -> Markup:
    """Draw the lines over the slots; values that a logarithmic axis cannot hold are left out."""
    drawn = _range(lines, logarithmic)
    ticks = _ticks(drawn, logarithmic)
    names = [shorten(name, 220) for name in slots]
    is_slanted = max(map(text_width, names)) > (width - 90) / len(slots)
    room = 16 + (0.75 * max(map(text_width, names)) if is_slanted else 12)
    frame = _SlotFrame(
        left=26 + max(text_width(format_compact(tick)) for tick in ticks),
        top=34,
        right=width - 16,
        bottom=height,
        values=drawn,
        num_slots=len(slots),
        logarithmic=logarithmic,
    )
    parts = [write_text(title, 8, 16, "start", "axis-title")]
    for tick in ticks:
        y = frame.height_of(tick)
        parts.append(draw_line(frame.left, y, frame.right, y, "grid", GRID))
        parts.append(write_text(format_compact(tick), frame.left - 8, y + 4.5, "end", "tick"))
    parts.append(draw_line(frame.left, frame.bottom, frame.right, frame.bottom, "axis", FAINT))
    parts += [_name_slot(name, frame.x(index), frame.bottom, is_slanted) for index, name in enumerate(names)]
    bottom = frame.bottom + room
    if slot_title:
        bottom += 20
        parts.append(write_text(slot_title, (frame.left + frame.right) / 2, bottom, "middle", "axis-title"))
    places = flow([line.label for line in lines], width, bottom + 26)
    parts += [_draw_line(line, frame, place) for line, place in zip(lines, places, strict=True)]
    return draw_svg(width, places[-1][1] + 16, f"{title}: {', '.join(line.label for line in lines)}", parts)


def _draw_line(line: SlotLine, frame: _SlotFrame, place: tuple[float, float]) -> Markup:
    colour = PALETTE[line.colour]
    shown = [(slot, dot) for slot, dot in enumerate(line.dots) if _can_show(dot.value, frame.logarithmic)]
    parts = []
    if len(shown) > 1:
        points = (f"{frame.x(slot):.1f} {frame.height_of(dot.value):.1f}" for slot, dot in shown)
        path: Attributes = {"class": "curve main", "d": "M" + "L".join(points), "fill": "none", "stroke": colour}
        parts.append(element("path", {**path, "stroke-width": 2, "stroke-linejoin": "round"}))
    for slot, dot in shown:
        x, y = frame.x(slot), frame.height_of(dot.value)
        if math.isfinite(dot.low) and math.isfinite(dot.high):
            low = frame.height_of(dot.low) if _can_show(dot.low, frame.logarithmic) else frame.bottom
            parts.append(draw_line(x, low, x, frame.height_of(dot.high), "curve bound", colour, 1.5))
        told = element("title", {}, text(f"{line.label}: {dot.value:.4g}"))
        parts.append(element("circle", {"class": "point", "cx": x, "cy": y, "r": 4, "fill": colour}, told))
    x, y = place
    parts.append(draw_line(x - 24, y, x - 6, y, "key-line", colour, 3))
    label: Attributes = {"class": "label", "x": x, "y": y + 4.5, "fill": INK, "font-weight": "600"}
    parts.append(element("text", label, text(line.label)))
    return element("g", {"class": f"method method-{line.colour}", "data-label": line.label}, join(parts))


def _name_slot(name: str, x: float, bottom: float, is_slanted: bool) -> Markup:
    if not is_slanted:
        return write_text(name, x, bottom + 20, "middle", "tick")
    y = bottom + 14
    place: Attributes = {"class": "tick", "x": x, "y": y, "text-anchor": "end", "fill": FAINT}
    return element("text", {**place, "transform": f"rotate(-40 {x:.1f} {y:.1f})"}, text(name))


def _can_show(value: float, logarithmic: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not logarithmic)


def _place(value: float, logarithmic: bool) -> float:
    return math.log10(value) if logarithmic else value


def _range(lines: Sequence[SlotLine], logarithmic: bool) -> Range:
    """Choose what is drawn: all values, and their bounds as far as they do not squeeze the values."""
    dots = [dot for line in lines for dot in line.dots if _can_show(dot.value, logarithmic)]
    values = [_place(dot.value, logarithmic) for dot in dots]
    if not values:
        return Range(0, 1)
    low, high = min(values), max(values)
    reach = max(high - low, 0.3 if logarithmic else 0.1 * abs(high) or 1.0)
    ends = [_place(end, logarithmic) for dot in dots for end in (dot.low, dot.high) if _can_show(end, logarithmic)]
    low = min([low, *(end for end in ends if end >= low - reach)])
    high = max([high, *(end for end in ends if end <= high + reach)])
    margin = 0.06 * max(high - low, reach)
    return Range(low - margin, high + margin)


def _ticks(drawn: Range, logarithmic: bool) -> tuple[float, ...]:
    if not logarithmic:
        return nice_ticks(drawn, 6)
    factors = (1, 2, 5) if drawn.high - drawn.low < 2.5 else (1,)
    powers = range(math.floor(drawn.low), math.ceil(drawn.high) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    return tuple(tick for tick in ticks if drawn.contains(math.log10(tick))) or (10 ** ((drawn.low + drawn.high) / 2),)
