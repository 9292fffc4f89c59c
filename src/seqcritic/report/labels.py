"""Where the labels of a drawing go, so that they never overlap."""

import math
from collections.abc import Sequence
from unicodedata import east_asian_width

LINE_HEIGHT = 18.0


def spread(wanted: Sequence[float], bottom: float) -> list[float]:
    """Keep every height near the one wanted for it, a line from the others and none beneath `bottom`."""
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
