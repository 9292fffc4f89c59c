"""Which files one actor-critic update walks through, in which order, and a picture of it.

    python benchmarks/trace_update.py [--out docs/images/walk.svg]

The update is the last of a few of a tiny spelling run, so that nothing is built on the way. Files are in the order in
which the walk first enters them; a change of rooms is where the next new file is in another folder. A mirror to look
into, not a limit: 0.1 had 36 files and 17 changes of folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import seqcritic
from seqcritic.data.task import build_task
from seqcritic.evaluation.evaluate import build_score
from seqcritic.report.svg import FAINT, GRID, INK, PALETTE, draw_svg, element, text
from seqcritic.settings.io import load_recipe
from seqcritic.training.learner import recipe_learner

SOURCE = Path(seqcritic.__file__).parent
TINY = {
    "actor": {"embedding": 8, "hidden": 8, "attention": 8},
    "critic": {"embedding": 8, "hidden": 8, "attention": 8},
    "method.name": "actor-critic",
    "method.likelihood_weight": 0.1,
    "training.batch": 4,
}
LEFT, TOP, STEP, ROW = 130.0, 30.0, 18.0, 40.0
# As data walks through the house; a room that is not here stands below.
ORDER = (
    "training",
    "data",
    "contracts",
    "settings",
    "methods",
    "models/gru",
    "native",
    "tensors",
    "decoding",
    "scores",
)


def traced_update() -> list[str]:
    """Return the files of the package, as `room/file`, in the order in which one update first calls into them."""
    settings = load_recipe("demo", TINY)
    task = build_task(settings.data)
    size, position = settings.training.batch, 0
    learner = recipe_learner(
        settings, task.codec.num_source_tokens, task.codec.num_target_tokens, build_score(settings)
    )
    learner.start_phase("train")

    def update() -> None:
        nonlocal position
        learner.update(task.training_batch(position, size, settings.seed), 1e-3)
        position += size

    for _ in range(3):
        update()
    walk: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE) and (not walk or walk[-1] != _name(path)):
            walk.append(_name(path))

    sys.setprofile(note)
    try:
        update()
    finally:
        sys.setprofile(None)
    return list(dict.fromkeys(walk))


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").as_posix()


def room_of(name: str) -> str:
    """Return the room of a file; a file beside the rooms is one of its own."""
    return name.rpartition("/")[0] or name


def changes(walk: Sequence[str]) -> int:
    """Return how often the walk goes over into another room."""
    rooms = [room_of(name) for name in walk]
    return sum(ours != theirs for ours, theirs in pairwise(rooms))


def draw(walk: Sequence[str]) -> str:
    """Draw the rooms one below the other and the files from left to right, in the order of the walk."""
    found = dict.fromkeys(room_of(name) for name in walk)
    rooms = [*(room for room in ORDER if room in found), *(room for room in found if room not in ORDER)]
    height = TOP + ROW * len(rooms)
    width = LEFT + STEP * (len(walk) + 1) + 140
    points = [
        (LEFT + STEP * (place + 1), TOP + ROW * (rooms.index(room_of(name)) + 0.5)) for place, name in enumerate(walk)
    ]
    parts = []
    for place, room in enumerate(rooms):
        y = TOP + ROW * (place + 0.5)
        parts.append(element("line", {"x1": LEFT, "x2": width - 10, "y1": y, "y2": y, "stroke": GRID}))
        label = {"x": LEFT - 10, "y": y + 4, "text-anchor": "end", "fill": INK, "font-size": 13}
        parts.append(element("text", label, text(room)))
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    parts.append(element("polyline", {"points": path, "fill": "none", "stroke": PALETTE[0], "stroke-width": 1.5}))
    for (x, y), name in zip(points, walk, strict=True):
        parts.append(element("circle", {"cx": x, "cy": y, "r": 3, "fill": PALETTE[0]}))
        turned = {
            "x": x + 4,
            "y": y - 5,
            "fill": FAINT,
            "font-size": 9,
            "transform": f"rotate(-35 {x + 4:g} {y - 5:g})",
        }
        parts.append(element("text", turned, text(name.rpartition("/")[2])))
    described = f"One actor-critic update: {len(walk)} files, {changes(walk)} changes of rooms"
    return str(draw_svg(width, height + 10, described, parts)) + "\n"


def main() -> None:
    """Print the walk, and draw it where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="an SVG file to draw into")
    out = parser.parse_args().out
    walk = traced_update()
    for number, name in enumerate(walk, start=1):
        print(f"{number:3}  {name}")
    print(f"{len(walk)} files, {changes(walk)} changes of rooms")
    if out is not None:
        out.write_text(draw(walk), encoding="utf-8")


if __name__ == "__main__":
    main()
