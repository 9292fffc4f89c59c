"""An ablation: one setting changed at a time, beside what the paper found."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from seqcritic.report.formats import ABSENT, format_count, format_percent, format_score
from seqcritic.report.records import Flag, Known, Number, Record, Whole
from seqcritic.report.tables import Column, list_cells


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
        return _percent(row.paper_score, self.rows[0].paper_score)  # BLEU: always higher is better


def list_ablation_columns(ablation: Ablation) -> tuple[Column, ...]:
    """List what the table shows."""
    arrow = "↓" if ablation.lower_is_better else "↑"
    columns = list_cells(
        ablation.rows,
        ("method", "row", lambda row: row.name),
        ("score", f"best valid {ablation.score_name} {arrow}", lambda row: format_score(row.score)),
        ("gain", "better by", lambda row: _format_gain(ablation.gain(row.score), row)),
        ("seeds", "by seed", lambda row: " ".join(format_score(score) for score in row.seed_scores)),
        ("last", "last", lambda row: format_score(_mean(row.last_scores))),
        ("critic", "critic explains", lambda row: format_percent(row.critic_explains)),
        ("updates", "updates", lambda row: format_count(row.updates)),
        ("paper", "paper's BLEU", lambda row: format_score(row.paper_score)),
        ("paper-gain", "paper better by", lambda row: f"{ablation.paper_gain(row):+.1f}%"),
        ("remark", "the paper says", lambda row: row.remark or ABSENT),
    )
    has_seeds = len(ablation.rows[0].seed_scores) > 1
    return tuple(column for column in columns if has_seeds or column.name != "seeds")


def _format_gain(gain: float, row: AblationRow) -> str:
    """Write the gain over the baseline; what diverged may have had a good score before it did."""
    if row.num_diverged:
        return "diverged"
    return "baseline" if row.is_baseline else f"{gain:+.1f}%"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _percent(score: float, base: float) -> float:
    return 100 * (score - base) / abs(base) if base else math.nan
