"""A study: rows of methods from one trained actor, with equal compute, each at the better of several rates.

    python benchmarks/evidence/study.py STUDY.yaml --actor RUN --runs runs/STUDY --out docs/results/STUDY [settings]

STUDY.yaml names a recipe and the rows (`Study` says what else), RUN is an actor of that recipe which likelihood has
trained until it was flat, settings are of all runs: their text, for instance. For each seed a critic is trained first,
and one of soft values where a row needs it. Then every row is trained with seed 1 at every rate; the rate with the best
validation score is kept, and the row's other seeds, if it gained anything, are trained at that rate alone. Every run
gets the recipe's `compare.budget`, its critic's pre-training included, by the recipe's costs. At most two runs at once,
one thread each; stopped, the same command goes on.

Written to OUT: comparison.json (greedily and by the study's beam), rates.json (all rates on validation), mbr.json (the
rows named for it, by minimum Bayes risk), own-beam.json (rows that train for a beam, by that beam, beside likelihood),
and NAME.json for each `--also NAME=FILE`, the same rows on other test text.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ConfigDict, Field

from seqcritic.comparing.gather import compare_experiments
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import PlannedRun, critic_of
from seqcritic.comparing.rows import CRITICS, Row
from seqcritic.data.task import build_task
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
from seqcritic.evaluation.evaluate import build_score
from seqcritic.evaluation.tuning import tune_length_reward
from seqcritic.progress import set_up_logging
from seqcritic.report.comparison import Comparison
from seqcritic.settings.base import Section
from seqcritic.settings.io import load_recipe, set_leaf, settings_from, with_method
from seqcritic.settings.tree import Settings
from seqcritic.training.calibration import CRITIC
from seqcritic.training.tracking import Record, read_metrics
from seqcritic.training.train import is_finished

BASELINE = "likelihood"


class StudyRow(Section):
    """A method as the recipe has it, or with settings of its own."""

    method: str | None = None  # its label in a comparison; null: the row's name is one
    settings: dict[str, Any] = Field(default_factory=dict)
    cost: float | None = None  # of an update, where the row's settings change the recipe's
    seeds: int | None = None  # null: as many as the study has
    beam: int | None = None  # its rate is chosen by such a beam on validation, its result is told by that too


class Study(Section):
    """What is trained and how it is judged."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    recipe: str  # a file beside the study's, or a packaged one by its name
    rates: dict[str, tuple[float, float]]  # of joint training by name: at first, and in the end
    seeds: int = 3
    best: int | None = None  # so many rows, by validation, get all seeds beside likelihood, the others one
    evaluations: int = 16  # on validation, of every run
    beam: int | None = None
    mbr: tuple[str, ...] = ()
    mbr_samples: int = 32
    rows: dict[str, StudyRow | None]

    def row(self, name: str) -> StudyRow:
        """Return a row; one without anything of its own is empty in the file."""
        return self.rows[name] or StudyRow()

    def label(self, name: str) -> str:
        """Return the label of a row's method."""
        return self.row(name).method or name


class Cell(NamedTuple):
    """One run of joint training."""

    row: str
    seed: int
    rate: str


class Runs:
    """The runs of a study: where they are, what each waits for, and its settings."""

    def __init__(self, study: Study, settings: Settings, actor: Path, folder: Path) -> None:
        self.study = study
        self.settings = settings
        self.actor = actor
        self.folder = folder
        self.sign = 1 if build_score(settings).higher_is_better else -1
        # Made here once: two runs that start at the same time would both make the text.
        task = build_task(settings.data)
        task.fingerprint()
        task.evaluation_set("valid")

    def place(self, cell: Cell) -> Path:
        """Return where a run is kept."""
        return self.folder / f"seed-{cell.seed}" / f"{cell.row.replace(', ', '-').replace(' ', '-')}-{cell.rate}"

    def critic(self, cell: Cell) -> Path | None:
        """Return the critic that a run begins with."""
        name = critic_of(self.row_settings(cell.row))
        return self.folder / f"seed-{cell.seed}" / name if name else None

    def row_settings(self, name: str) -> Settings:
        """Return the recipe with a row's method and what is its own."""
        row, label = self.study.row(name), self.study.label(name)
        tree = with_method(self.settings, label).model_dump(mode="json")
        for key, value in row.settings.items():
            set_leaf(tree, key, value)
        if row.cost is not None:
            tree["compare"]["costs"][label] = row.cost
        return settings_from(tree)

    def cost(self, name: str) -> float:
        """Return what an update of a row costs, in updates of likelihood."""
        return self.row_settings(name).compare.cost(self.study.label(name))

    def train(self, cells: list[Cell]) -> None:
        """Train so many runs, and the critics that they begin with."""
        planned: dict[Path, tuple[PlannedRun, Settings]] = {}
        for cell in cells:
            if (critic := self.critic(cell)) is not None and critic not in planned:
                run = PlannedRun(critic.name, cell.seed, critic, ())
                planned[critic] = run, self._critic_settings(CRITICS[critic.name], cell.seed)
        for cell in cells:
            label, place, critic = self.study.label(cell.row), self.place(cell), self.critic(cell)
            needs = (critic,) if critic else ()
            run = PlannedRun(label, cell.seed, place, needs, Row(f"{cell.row}, {cell.rate}", label))
            planned[place] = run, self.cell_settings(cell)
        Jobs([run for run, _ in planned.values()], lambda run: planned[run.folder][1], 2, may_diverge=True).run()

    def cell_settings(self, cell: Cell) -> Settings:
        """Return the settings of a run: as many updates as its budget pays for."""
        tree = self.row_settings(cell.row).model_dump(mode="json")
        start, spent = {"actor": str(self.actor)}, 0.0
        if (critic := self.critic(cell)) is not None:
            start["critic"] = str(critic)
            spent = self.settings.phases.critic.updates * self.settings.compare.cost(CRITIC)
        assert self.settings.compare.budget is not None, "a study's recipe gives its budget"
        updates = max(1, round((self.settings.compare.budget - spent) / self.cost(cell.row)))
        rate, final = self.study.rates[cell.rate]
        tree |= {"seed": cell.seed, "start": start}
        tree["phases"]["train"] |= {"updates": updates, "learning_rate": rate, "final_learning_rate": final}
        tree["training"]["evaluate_every"] = max(1, updates // self.study.evaluations)
        return settings_from(tree)

    def _critic_settings(self, label: str, seed: int) -> Settings:
        tree = with_method(self.settings, label).model_dump(mode="json")
        tree |= {"seed": seed, "start": {"actor": str(self.actor)}}
        tree["phases"]["train"]["updates"] = 0
        return settings_from(tree)

    def on_valid(self, cell: Cell) -> float:
        """Return the validation score that a rate is chosen by; a run that diverged has the worst there is."""
        place = self.place(cell)
        if not is_finished(place):
            return -self.sign * float("inf")
        if (width := self.study.row(cell.row).beam) is not None:
            rho, scores = tune_length_reward(place, width)
            return scores[rho]
        return self.sign * max(self.sign * record["valid_score"] for record in _validations(place))

    def choose_rates(self) -> list[dict[str, Any]]:
        """Return, for each row, what seed 1 reached on validation at each rate, and the best one."""
        found = []
        for row in self.study.rows:
            cells = [Cell(row, 1, rate) for rate in self.study.rates]
            scores = {cell.rate: self.on_valid(cell) for cell in cells}
            found.append(
                {
                    "row": row,
                    "method": self.study.label(row),
                    "settings": self.study.row(row).settings,
                    "cost": self.cost(row),
                    "updates": self.cell_settings(cells[0]).phases.train.updates,
                    "start": round(_validations(self.place(cells[0]))[0]["valid_score"], 4),
                    "valid": {rate: round(score, 4) for rate, score in scores.items()},
                    "chosen": max(scores, key=lambda rate: self.sign * scores[rate]),
                }
            )
        return found

    def final_cells(self, chosen: list[dict[str, Any]]) -> dict[str, list[Cell]]:
        """Return, for each row, the runs of all its seeds at its rate.

        A row that is nowhere better on validation than what it began with is not tried with other seeds.
        """
        ranked = sorted(chosen, key=lambda each: -self.sign * each["valid"][each["chosen"]])
        ranked = [each for each in ranked if each["row"] != BASELINE]
        best = {BASELINE} | {each["row"] for each in ranked[: self.study.best]}
        cells = {}
        for each in chosen:
            row = each["row"]
            gain = self.sign * (each["valid"][each["chosen"]] - each["start"])
            has_hope = row == BASELINE or (row in best and gain > 0)
            num_seeds = (self.study.row(row).seeds or self.study.seeds) if has_hope else 1
            cells[row] = [Cell(row, seed, each["chosen"]) for seed in range(1, num_seeds + 1)]
        return cells

    def compared(self, cells: dict[str, list[Cell]], also: dict[str, Path]) -> Iterator[tuple[str, Comparison]]:
        """Yield every comparison with the name of its file; rows of which a seed diverged are left out."""
        study = self.study
        runs = {row: [self.place(cell) for cell in own] for row, own in cells.items()}
        runs = {row: places for row, places in runs.items() if all(map(is_finished, places))}
        title, notes = self.settings.name, (self._describe_budget(list(runs)),)
        # What was run stands in two files of the repository; a run's own settings tell where its machine has the text.
        told = f"{study.recipe}, and as rows:\n{yaml.safe_dump(study.model_dump(mode='json'), allow_unicode=True)}"
        yield "comparison", compare_experiments(runs, study.beam, title, told, notes)
        for name, text in also.items():
            yield name, compare_experiments(runs, None, title, told, notes, overrides=[f"data.test={text.resolve()}"])
        if study.mbr:
            some = {row: runs[row] for row in study.mbr if row in runs}
            search = MinimumBayesRisk(study.mbr_samples)
            yield "mbr", compare_experiments(some, None, title, told, notes, search=search)
        widths = {row: width for row in runs if (width := study.row(row).beam) is not None}
        if widths:
            some = {row: runs[row] for row in (BASELINE, *widths)}
            yield "own-beam", compare_experiments(some, max(widths.values()), title, told, notes)

    def _describe_budget(self, rows: list[str]) -> str:
        costs = ", ".join(f"{row} {self.cost(row):.2f}" for row in rows)
        critic = f"{self.settings.phases.critic.updates} updates of {self.settings.compare.cost(CRITIC):.2f}"
        return (
            f"Equal compute: {self.settings.compare.budget:,.0f} likelihood updates after the shared actor, the "
            f"critic's pre-training included ({critic}). Cost of one update in likelihood updates: {costs}."
        )


def _validations(place: Path) -> list[Record]:
    return [record for record in read_metrics(place) if record["phase"] == "train" and "valid_score" in record]


def main() -> None:
    """Run what is left of a study and write its files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, metavar="STUDY.yaml")
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    parser.add_argument("--actor", required=True, type=Path)
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--also", action="append", default=[], metavar="NAME=FILE", help="other text to test on")
    options = parser.parse_intermixed_args()
    set_up_logging()
    study = Study.model_validate(yaml.safe_load(options.study.read_text(encoding="utf-8")))
    beside = options.study.parent / study.recipe
    settings = load_recipe(str(beside) if beside.is_file() else study.recipe, ["threads=1", *options.overrides])
    runs = Runs(study, settings, options.actor, options.runs)
    runs.train([Cell(row, 1, rate) for row in study.rows for rate in study.rates])
    chosen = runs.choose_rates()
    write(options.out / "rates.json", chosen)
    cells = runs.final_cells(chosen)
    runs.train([cell for own in cells.values() for cell in own])  # those of seed 1 are there
    also = {name: Path(path) for name, _, path in (each.partition("=") for each in options.also)}
    for name, comparison in runs.compared(cells, also):
        write(options.out / f"{name}.json", comparison.to_dict())


def write(path: Path, content: object) -> None:
    """Write a result file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
