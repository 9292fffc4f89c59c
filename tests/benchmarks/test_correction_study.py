"""The study of the correction: every cell is there, and each run starts from the right critic with the right η."""

from __future__ import annotations

from pathlib import Path

from correction import READY, UNREADY, Study
from seqcritic.settings.io import load_recipe

RUNS = Path("runs")


def test_the_runs_of_the_study():
    study = Study(load_recipe("demo"), RUNS, 3, 60)
    plan = {run.folder: run for run in study.plan()}
    assert len(plan) == 3 * (1 + 2) + 3 * 2 * 5 + 2 * 5
    settings = {folder: study.settings_of(run) for folder, run in plan.items()}
    critics = {name: settings[RUNS / "seed-2" / f"critic-{name}"] for name in (READY, UNREADY)}
    assert {name: critic.phases.critic.updates for name, critic in critics.items()} == {READY: 1000, UNREADY: 60}
    assert {critic.start.actor for critic in critics.values()} == {"runs/seed-2/actor"}
    for folder, cell in study.cells.items():
        own = settings[folder]
        assert (own.method.label, own.method.correction, own.seed) == (cell.label, cell.correction, cell.seed)
        assert own.start.critic == f"runs/seed-{cell.seed}/critic-{cell.critic}"
        assert own.phases.train.updates == 1850
    assert {cell.seed for cell in study.cells.values() if not cell.mixed} == {1}
