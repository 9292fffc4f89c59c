"""How much the critics of runs explained, from their metrics: over the critic's phase and joint training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqcritic.report.comparison import Curve, Point
from seqcritic.training.run_folder import read_settings
from seqcritic.training.tracking import Record, read_metrics

FIELD = "held_out_explained_variance"


def critic_curve(label: str, folder: Path) -> Curve | None:
    """Return the share explained over a run and, where its critic is another run's, over that one's critic phase."""
    settings = read_settings(folder)
    records = _measured(folder)
    if not records:
        return None
    if settings.start.critic is not None:
        records = [record for record in _measured(Path(settings.start.critic)) if record["phase"] == "critic"] + records
    points = tuple(Point(record["compute"], record["update"], record[FIELD]) for record in records)
    return Curve(label, settings.seed, points)


def share_at_start(folders: Sequence[Path]) -> float | None:
    """Return the share explained when joint training began, the mean over runs, or None where no critic trains."""
    shares = [
        record[FIELD]
        for folder in folders
        for record in _measured(folder)
        if record["phase"] == "train"
        if record["update"] == 0
    ]
    return sum(shares) / len(shares) if shares else None


def _measured(folder: Path) -> list[Record]:
    return [record for record in read_metrics(folder) if FIELD in record]
