"""An ablation: one setting changed at a time, beside what the paper found; as a table and as one picture."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seqcritic.report.columns import Column
from seqcritic.report.drawing import FAINT, GRID, PALETTE, draw_line, draw_svg, write_text
from seqcritic.report.formats import ABSENT, format_compact, format_count, format_score, format_share
from seqcritic.report.labels import text_width
from seqcritic.report.markup import Markup, element, join, text
from seqcritic.report.records import Flag, Known, Number, Record, Whole
from seqcritic.report.scales import Range, nice_ticks

_ROW_HEIGHT = 24.0


@dataclass(frozen=True, slots=True)
class AblationRow:
    """One row: its best and last validation score by seed, and the paper's BLEU for the same change."""

    name: str
    is_baseline: Flag
    seed_scores: tuple[Number, ...]
    last_scores: tuple[Number, ...]
    critic_explains: Known | None  # at the start of joint training
    num_diverged: Whole
    updates: Whole
    paper_score: Number
    remark: str

    @property
    def score(self) -> float:
        """The mean over seeds."""
        return _mean(self.seed_scores)


@dataclass(frozen=True, slots=True)
class Ablation(Record):
    """The baseline, which stands first, and the rows that change one setting of it."""

    record_name: ClassVar[str] = "ablation"
    title: str
    score_name: str
    lower_is_better: Flag
    start_scores: tuple[Number, ...]  # of the shared actor, by seed
    rows: tuple[AblationRow, ...]
    configuration: str
    environment: dict[str, str]
    notes: tuple[str, ...]

    def gain(self, score: float) -> float:
        """Say by how many percent of the baseline's score a score is better (negative: worse)."""
        change = _percent(score, self.rows[0].score)
        return -change if self.lower_is_better else change

    def paper_gain(self, row: AblationRow) -> float:
        """Say the same of the paper's BLEU."""
        return _percent(row.paper_score, self.rows[0].paper_score)


def list_ablation_columns(ablation: Ablation) -> tuple[Column, ...]:
    """List what the table shows."""
    rows = ablation.rows
    arrow = "↓" if ablation.lower_is_better else "↑"
    columns = [
        Column("method", "row", tuple(row.name for row in rows)),
        Column("score", f"best valid {ablation.score_name} {arrow}", tuple(format_score(row.score) for row in rows)),
        Column("gain", "better by", tuple(_format_gain(ablation.gain(row.score), row) for row in rows)),
        Column("last", "last", tuple(format_score(_mean(row.last_scores)) for row in rows)),
        Column("critic", "critic explains", tuple(format_share(row.critic_explains) for row in rows)),
        Column("updates", "updates", tuple(format_count(row.updates) for row in rows)),
        Column("paper", "paper's BLEU", tuple(format_score(row.paper_score) for row in rows)),
        Column("paper-gain", "paper better by", tuple(f"{ablation.paper_gain(row):+.1f}%" for row in rows)),
        Column("remark", "the paper says", tuple(row.remark or ABSENT for row in rows)),
    ]
    if len(rows[0].seed_scores) > 1:
        by_seed = tuple(" ".join(format_score(score) for score in row.seed_scores) for row in rows)
        columns.insert(3, Column("seeds", "by seed", by_seed))
    return tuple(columns)


def draw_ablation(ablation: Ablation, width: int = 960) -> Markup:
    """Draw each row's change against the baseline: ours, with a small dot for each seed, and the paper's beside it."""
    left = 20 + max(text_width(row.name) for row in ablation.rows)
    middle = (left + width) / 2
    top, bottom = 50.0, 50.0 + _ROW_HEIGHT * len(ablation.rows)

    def ours(row: AblationRow) -> list[float]:
        return [ablation.gain(score) for score in (row.score, *row.seed_scores)]

    def theirs(row: AblationRow) -> list[float]:
        return [ablation.paper_gain(row)]

    parts = [
        write_text(row.name, left - 10, _height(top, index) + 4.5, "end", "tick")
        for index, row in enumerate(ablation.rows)
    ]
    title = f"validation {ablation.score_name}, % better than the baseline"
    parts += _draw_panel(ablation.rows, ours, (left, middle - 20), (top, bottom), title, 0)
    parts += _draw_panel(
        ablation.rows, theirs, (middle + 20, width - 20), (top, bottom), "the paper's BLEU, the same", 1
    )
    return draw_svg(width, bottom + 36, f"ablation of {ablation.title}: change of each row against the baseline", parts)


def _draw_panel(
    rows: Sequence[AblationRow],
    values_of: Callable[[AblationRow], list[float]],
    across: tuple[Number, Number],
    down: tuple[Number, Number],
    title: str,
    colour_index: Whole,
) -> list[Markup]:
    """Draw one dot a row, the first of its values, joined to the baseline by a line; further values are small dots."""
    values = [[value for value in values_of(row) if math.isfinite(value)] for row in rows]
    flat = [0.0, *(value for found in values for value in found)]
    margin = 0.08 * (max(flat) - min(flat)) or 1.0
    drawn = Range(min(flat) - margin, max(flat) + margin)
    colour = PALETTE[colour_index]

    def place(value: float) -> float:
        return across[0] + drawn.fraction(value) * (across[1] - across[0])

    parts = [write_text(title, across[0], 24, "start", "axis-title")]
    for tick in nice_ticks(drawn, 5):
        x = place(tick)
        parts.append(draw_line(x, down[0], x, down[1], "grid", GRID))
        parts.append(write_text(format_compact(tick), x, down[1] + 20, "middle", "tick"))
    parts.append(draw_line(place(0), down[0], place(0), down[1], "axis", FAINT))
    dots = []
    for index, (row, found) in enumerate(zip(rows, values, strict=True)):
        y = _height(down[0], index)
        if not found:
            dots.append(write_text("diverged", place(0) - 6, y + 4.5, "end", "note"))
            continue
        dots.append(draw_line(place(0), y, place(found[0]), y, "curve", colour, 2))
        dots += [_dot(place(value), y, 2.5, colour, f"{row.name}: {value:+.2f} %") for value in found[1:]]
        dots.append(_dot(place(found[0]), y, 4.5, colour, f"{row.name}: {found[0]:+.2f} %"))
    return [*parts, element("g", {"class": f"method method-{colour_index}"}, join(dots))]


def _dot(x: float, y: float, radius: float, colour: str, title: str) -> Markup:
    told = element("title", {}, text(title))
    return element("circle", {"class": "point", "cx": x, "cy": y, "r": radius, "fill": colour}, told)


def _height(top: float, index: int) -> float:
    return top + (index + 0.5) * _ROW_HEIGHT


def _format_gain(gain: float, row: AblationRow) -> str:
    """Write the gain over the baseline; what diverged may have had a good score before it did."""
    if row.num_diverged:
        return "diverged"
    return "baseline" if row.is_baseline else f"{gain:+.1f}%"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _percent(score: float, base: float) -> float:
    return 100 * (score - base) / abs(base) if base else math.nan
