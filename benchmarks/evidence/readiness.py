"""The picture of a critic's readiness: what joint training gained against what the critic explained when it began."""

from __future__ import annotations

import json
from pathlib import Path

from seqcritic.report.formats import format_count, format_share
from seqcritic.report.markup import Markup
from seqcritic.report.slots import Dot, SlotLine, draw_slots


def draw_readiness(path: Path) -> Markup:
    """Draw a file of `tries.py` whose runs differ in the critic they start from, in the order of what it explains."""
    runs = json.loads(path.read_text(encoding="utf-8"))
    critics = sorted({(run["critic_explains"], run["critic_updates"]) for run in runs})
    lines = []
    for colour, method in enumerate(dict.fromkeys(run["method"] for run in runs)):
        gains = {run["critic_explains"]: run["best"] - run["first"] for run in runs if run["method"] == method}
        lines.append(SlotLine(method, tuple(Dot(gains.get(share, float("nan"))) for share, _ in critics), colour))
    slots = [f"explains {format_share(share)}, {format_count(updates)} updates" for share, updates in critics]
    return draw_slots(slots, lines, "best validation score minus that of the actor at the start", "the critic before")
