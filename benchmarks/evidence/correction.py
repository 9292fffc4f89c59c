"""The study of `method.correction`: how much of it is best, and whether `auto` finds it, as a small file.

    python benchmarks/evidence/correction.py --runs runs/correction --out docs/results/spelling/correction.json

Spelling as in the demo recipe (L = 10, noise 0.5). From one actor a seed, and two critics, one that is ready (the
recipe's 1,000 updates) and one that is not (60), actor-critic trains with η = 0 (the paper, its delayed actor
included), 0.5, 1 and `auto`, and REINFORCE with the critic beside it: with likelihood mixed in for three seeds, without
for the first. At most two runs at once, one thread each; stopped, the same command goes on. Nothing is evaluated on
test.

Further arguments are settings of all runs: `method.gamma_theta=1` lets the actor itself draw for η = 0 too, and
`phases.actor.updates=20 phases.critic.updates=9 phases.train.updates=12 --unready 3 --seeds 1` tries the script out.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqcritic.comparing.gather import explained_at_start
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import PlannedRun
from seqcritic.comparing.rows import Row
from seqcritic.data.task import build_task
from seqcritic.settings.io import load_recipe, settings_from, with_method
from seqcritic.settings.methods import MIXED
from seqcritic.settings.tree import Settings
from seqcritic.training.environment import environment
from seqcritic.training.tracking import read_metrics
from seqcritic.training.train import is_finished

READY, UNREADY = "ready", "unready"
ARMS: tuple[tuple[str, float | str], ...] = (
    ("actor-critic", 0.0),
    ("actor-critic", 0.5),
    ("actor-critic", 1.0),
    ("actor-critic", "auto"),
    ("reinforce-critic", 0.0),
)


@dataclass(frozen=True)
class Cell:
    """One run of joint training."""

    seed: int
    critic: str  # READY or UNREADY
    mixed: bool
    method: str
    correction: float | str

    @property
    def label(self) -> str:
        """The method's label in a comparison."""
        return self.method + (MIXED if self.mixed else "")

    @property
    def title(self) -> str:
        """What the cell is called in tables: the method, its η, and whether the critic was ready."""
        eta = f" η={self.correction:g}" if isinstance(self.correction, float) else f" η={self.correction}"
        return f"{self.label}{eta if self.method == 'actor-critic' else ''}, critic {self.critic}"

    def folder(self, runs: Path) -> Path:
        """Return where the run is kept."""
        return runs / f"seed-{self.seed}" / f"{self.label}-{self.correction}-{self.critic}"


def list_cells(num_seeds: int) -> list[Cell]:
    """Return all runs of the study: with likelihood for every seed, without for the first."""
    return [
        Cell(seed, critic, mixed, *arm)
        for seed in range(1, num_seeds + 1)
        for mixed in (True, False)
        if mixed or seed == 1
        for critic in (READY, UNREADY)
        for arm in ARMS
    ]


class Study:
    """The runs, what each waits for, and its settings."""

    def __init__(self, settings: Settings, runs: Path, num_seeds: int, unready_updates: int) -> None:
        self.settings = settings
        self.runs = runs
        self.cells = {cell.folder(runs): cell for cell in list_cells(num_seeds)}
        self.seeds = range(1, num_seeds + 1)
        self.critic_updates = {READY: settings.phases.critic.updates, UNREADY: unready_updates}

    def plan(self) -> list[PlannedRun]:
        """Return all runs, those that others wait for first; a run of a row may diverge, which is its result."""
        planned = []
        for seed in self.seeds:
            actor = self.runs / f"seed-{seed}" / "actor"
            critics = {name: self.runs / f"seed-{seed}" / f"critic-{name}" for name in self.critic_updates}
            planned.append(PlannedRun("actor", seed, actor, ()))
            planned += [
                PlannedRun("critic", seed, folder, (actor,), Row(name, "actor-critic"))
                for name, folder in critics.items()
            ]
            planned += [
                PlannedRun(cell.label, seed, folder, (actor, critics[cell.critic]), Row(cell.title, cell.label))
                for folder, cell in self.cells.items()
                if cell.seed == seed
            ]
        return planned

    def settings_of(self, run: PlannedRun) -> Settings:
        """Return the settings of a run."""
        label = {"actor": "likelihood", "critic": "actor-critic"}.get(run.kind, run.kind)
        tree: dict[str, Any] = with_method(self.settings, label).model_dump(mode="json")
        tree["seed"], tree["threads"] = run.seed, 1
        tree["start"] = dict(zip(("actor", "critic"), map(str, run.needs), strict=False))
        if run.kind in ("actor", "critic"):
            tree["phases"]["train"]["updates"] = 0
            if run.kind == "critic" and run.row:
                tree["phases"]["critic"]["updates"] = self.critic_updates[run.row.label]
        else:
            tree["method"]["correction"] = self.cells[run.folder].correction
        return settings_from(tree)

    def rows(self) -> list[dict[str, object]]:
        """Return what is told of each run of joint training."""
        return [_describe(cell, folder, self.critic_updates[cell.critic]) for folder, cell in self.cells.items()]


def _describe(cell: Cell, folder: Path, critic_updates: int) -> dict[str, object]:
    records = [record for record in read_metrics(folder) if record["phase"] == "train"]
    curve = [(record["update"], round(record["valid_score"], 4)) for record in records if "valid_score" in record]
    scores = [score for _, score in curve]
    return {
        "title": cell.title,
        "method": cell.label,
        "correction": cell.correction,
        "critic": cell.critic,
        "critic_updates": critic_updates,
        "critic_explains": explained_at_start([folder]),
        "seed": cell.seed,
        "finished": is_finished(folder),
        "curve": curve,  # update, greedy validation CER
        "first": scores[0] if scores else None,
        "best": min(scores, default=None),
        "final": scores[-1] if scores else None,
        "etas": [(record["update"], round(record["correction"], 4)) for record in records if "correction" in record],
    }


def _print_means(rows: list[dict[str, Any]]) -> None:
    """Print the mean over the seeds of what each cell began with, reached at best and ended with."""
    titles = dict.fromkeys(row["title"] for row in rows)
    for title in titles:
        own = [row for row in rows if row["title"] == title and row["final"] is not None]
        if own:
            means = {field: statistics.mean(row[field] for row in own) for field in ("first", "best", "final")}
            told = "  ".join(f"{field} {mean:6.2f}" for field, mean in means.items())
            print(f"{title:58} {len(own)} seed(s)  {told}")


def main() -> None:
    """Run what is left of the study and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--unready", type=int, default=60, help="updates of the critic that is not ready")
    parser.add_argument("--jobs", type=int, default=2, choices=(1, 2))
    options = parser.parse_args()
    study = Study(load_recipe("demo", options.overrides), options.runs, options.seeds, options.unready)
    # Made here once: two runs that start at the same time would both make the text.
    task = build_task(study.settings.data)
    task.fingerprint()
    task.evaluation_set("valid")
    Jobs(study.plan(), study.settings_of, options.jobs, may_diverge=True).run()
    rows = study.rows()
    head = {"recipe": "demo", "overrides": options.overrides, "environment": environment()}
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    _print_means(rows)


if __name__ == "__main__":
    main()
