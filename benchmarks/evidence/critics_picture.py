"""What joint training came to, over what was known of the critic before it: one dot for each critic of a file."""

from __future__ import annotations

import json
from pathlib import Path

from markupsafe import Markup

from seqcritic.report.formats import format_compact
from seqcritic.report.scales import Range, nice_ticks
from seqcritic.report.svg import (
    FAINT,
    GRID,
    PALETTE,
    Attributes,
    Frame,
    draw_line,
    draw_svg,
    element,
    flow,
    text,
    write_text,
)

WIDTH, HEIGHT = 960, 360
KNOWN = {
    "critic_explains": "share of the returns' variance that the critic explains",
    "correlation": "correlation of its values of tokens with the true ones",
}
AXIS = "better than the actor it began with, % of its score on valid, at the end"


def draw_critics(path: Path) -> Markup:
    """Draw the gain of joint training over the explained variance, and over the correlation of token values."""
    critics = json.loads(path.read_text(encoding="utf-8"))
    tasks = list(dict.fromkeys(_task(critic) for critic in critics))
    gains = [_gain(critic) for critic in critics]
    margin = 0.08 * (max(gains) - min(gains))
    values = Range(min(gains) - margin, max(gains) + margin)
    parts = [write_text(AXIS, 8, 16, "start", "axis-title")]
    for panel, (figure, title) in enumerate(KNOWN.items()):
        left = 60 + panel * WIDTH / 2
        frame = Frame(left, 34, left + WIDTH / 2 - 84, HEIGHT, values)
        parts += _axes(frame, title)
        for critic, gain in zip(critics, gains, strict=True):
            told = element("title", {}, text(f"{critic['title']}: {critic[figure]:.2f}, {gain:+.1f} %"))
            x = frame.left + critic[figure] * (frame.right - frame.left)
            place: Attributes = {"class": "point", "cx": round(x, 1), "cy": round(frame.y(gain), 1), "r": 5}
            parts.append(element("circle", {**place, "fill": PALETTE[tasks.index(_task(critic))]}, told))
    places = flow(tasks, WIDTH, HEIGHT + 66)
    for index, (task, (x, y)) in enumerate(zip(tasks, places, strict=True)):
        parts.append(element("circle", {"class": "point", "cx": x - 12, "cy": y, "r": 5, "fill": PALETTE[index]}))
        parts.append(write_text(task, x, y + 4.5, "start", "axis-title"))
    return draw_svg(WIDTH, places[-1][1] + 16, f"{AXIS}, over {' and '.join(KNOWN.values())}", parts)


def _axes(frame: Frame, title: str) -> list[Markup]:
    parts = []
    for tick in nice_ticks(frame.values, 6):
        y, colour = frame.y(tick), FAINT if tick == 0 else GRID
        parts.append(draw_line(frame.left, y, frame.right, y, "grid", colour))
        parts.append(write_text(format_compact(tick), frame.left - 8, y + 4.5, "end", "tick"))
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x = frame.left + tick * (frame.right - frame.left)
        parts.append(write_text(f"{tick:g}", x, frame.bottom + 18, "middle", "tick"))
    parts.append(write_text(title, (frame.left + frame.right) / 2, frame.bottom + 40, "middle", "axis-title"))
    return parts


def _gain(critic: dict[str, float]) -> float:
    """Return by how much the last score beats the first, in percent of it; the error rate should fall, BLEU rise."""
    change = 100 * (critic["last"] / critic["first"] - 1)
    return -change if critic["lower_is_better"] else change


def _task(critic: dict[str, str]) -> str:
    """Return what stands before the colon of a critic's title."""
    return critic["title"].partition(":")[0]
