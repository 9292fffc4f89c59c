"""The values of one prediction as a drawing: forecast and truth over its steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seqcritic.report.formats import format_compact
from seqcritic.report.frame import Frame
from seqcritic.report.labels import shorten, text_width
from seqcritic.report.markup import Attributes, Markup, element, join, text
from seqcritic.report.scales import Range, nice_ticks
from seqcritic.report.values import ValueTable, show_token


def value_range(values: Sequence[float]) -> Range:
    """Choose the drawn range of values: all of them, and zero."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return Range(min(low, 0.0), max(high, 0.0) if max(high, 0.0) > min(low, 0.0) else 1.0)


@dataclass(frozen=True, slots=True)
class _StepFrame(Frame):
    """The rectangle of a chart whose horizontal axis has a slot for every step."""

    num_steps: int

    @property
    def slot(self) -> float:
        return (self.right - self.left) / self.num_steps

    def x(self, step: int) -> float:
        return self.left + (step + 0.5) * self.slot


def draw_forecast(table: ValueTable, summaries: Sequence[str], width: int = 960, height: int = 330) -> Markup:
    """Draw forecast, truth and rewards over the steps; the tokens taken stand beneath."""
    values = [step.value for step in table.steps]
    rewards = [step.reward for step in table.steps]
    drawn = value_range([*values, *rewards, *table.collected, *table.remaining])
    names = [shorten(show_token(step.token), 96) for step in table.steps]
    longest = max(text_width(name) for name in names)
    ticks = nice_ticks(drawn, 6)
    frame = _StepFrame(
        left=20 + max(text_width(format_compact(tick)) for tick in ticks),
        top=14,
        right=width - 8,
        bottom=height - (30 if longest < 12 else 14 + 0.8 * longest),
        values=drawn,
        num_steps=len(names),
    )
    parts = []
    for tick in ticks:
        y = frame.y(tick)
        line: Attributes = {"class": "grid" if tick else "axis", "x1": frame.left, "x2": frame.right, "y1": y, "y2": y}
        parts.append(element("line", line))
        parts.append(_write(format_compact(tick), {"x": frame.left - 8, "y": y + 4.5, "text-anchor": "end"}))
    parts += [_draw_column(table, index, frame, summaries[index]) for index in range(len(names))]
    parts += _write_names(names, frame, is_slanted=longest >= 12)
    parts.append(_draw_line(table.remaining, frame, "method-5", "6 4"))
    parts.append(_draw_line(table.collected, frame, "method-2", ""))
    parts.append(_draw_line(values, frame, "method-1", ""))
    label = "value of the token taken, rewards still to come and rewards collected, at each step"
    attributes: Attributes = {
        "class": "curves",
        "viewBox": f"0 0 {width} {height}",
        "role": "img",
        "aria-label": label,
        "font-size": 13,
    }
    return element("svg", attributes, Markup("\n"), join(parts), Markup("\n"))


def _draw_column(table: ValueTable, index: int, frame: _StepFrame, summary: str) -> Markup:
    """Draw one step's reward, and the ground by which the pointer finds the step."""
    reward = table.steps[index].reward
    x, slot = frame.x(index), frame.slot
    whole: Attributes = {"class": "ground", "x": x - slot / 2, "width": slot, "y": frame.top}
    parts = [element("rect", {**whole, "height": frame.bottom - frame.top})]
    if math.isfinite(reward):
        top, bottom = frame.y(max(reward, 0)), frame.y(min(reward, 0))
        bar: Attributes = {"class": "reward", "x": x - 0.28 * slot, "width": 0.56 * slot, "y": top}
        parts.append(element("rect", {**bar, "height": bottom - top}))
    title = element("title", {}, text(summary))
    return element("g", {"class": "column", "data-step": str(index)}, title, *parts)


def _write_names(names: Sequence[str], frame: _StepFrame, is_slanted: bool) -> list[Markup]:
    """Write the tokens beneath their steps, as many as have room."""
    every = math.ceil((15 if is_slanted else 10) / frame.slot)
    labels = []
    for index in range(0, len(names), every):
        x, y = frame.x(index), frame.bottom + (12 if is_slanted else 20)
        place: Attributes = {"x": x, "y": y, "text-anchor": "end" if is_slanted else "middle"}
        if is_slanted:
            place["transform"] = f"rotate(-50 {x:.1f} {y:.1f})"
        # A slanted name reaches to the left of its step, which the first ones have little room for.
        labels.append(_write(shorten(names[index], x / 0.8) if is_slanted else names[index], place))
    return labels


def _draw_line(values: Sequence[float], frame: _StepFrame, style: str, dash: str) -> Markup:
    places = [(frame.x(index), frame.y(value)) for index, value in enumerate(values) if math.isfinite(value)]
    path: Attributes = {"class": "curve main", "d": "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)}
    path |= {"fill": "none", "stroke-width": 2.2, "stroke-linejoin": "round"}
    if dash:
        path["stroke-dasharray"] = dash
    dots = [element("circle", {"class": "point", "cx": x, "cy": y, "r": 3}) for x, y in places]
    return element("g", {"class": f"method {style}"}, element("path", path), *([] if dash else dots))


def _write(content: str, place: Attributes) -> Markup:
    return element("text", {"class": "tick", **place}, text(content))
