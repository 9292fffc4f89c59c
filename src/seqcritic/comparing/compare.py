"""A comparison: one shared pre-trained actor (and critic) a seed, every row from it with equal compute."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqcritic.comparing.costs import describe_costs, own_costs, rows_with_costs, with_costs
from seqcritic.comparing.gather import compare_experiments
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.on_ray import placed_on
from seqcritic.comparing.plan import budget, check_budget, plan_runs, run_settings
from seqcritic.comparing.rows import Row, method_rows, own_rows
from seqcritic.contracts.task import Task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score
from seqcritic.files import seal, write_whole
from seqcritic.progress import set_up_logging
from seqcritic.report.charts import draw_curves
from seqcritic.report.comparison import Comparison
from seqcritic.report.comparison_tables import comparison_table, markdown_table
from seqcritic.report.headline import list_caveats
from seqcritic.report.pages import render_page
from seqcritic.report.tables import open_console
from seqcritic.report.terminal import terminal_plot
from seqcritic.settings.data import OBJECT
from seqcritic.settings.io import settings_from, to_yaml
from seqcritic.settings.tree import Settings
from seqcritic.training.parts import recipe_task
from seqcritic.training.phases import in_epochs, in_updates
from seqcritic.training.rewards import check_score
from seqcritic.training.run_folder import moved_text

REPORT_FILE, CURVES_FILE = "report.html", "curves.svg"


def compare(
    settings: Settings,
    methods: Sequence[str] = (),
    num_seeds: int = 1,
    out: str | Path = "runs/compare",
    jobs: int = 1,
    from_scratch: bool = False,
    rows: Mapping[str, Mapping[str, Any]] | None = None,
    on: str | None = None,
) -> tuple[Comparison, Path]:
    """Train the methods and rows, evaluate them on test, and write table, curves and report into `out`.

    `rows` are variations of the recipe: settings by dotted key, under a label of one's own, as in
    {"half": {"method.correction": 0.5}, "full": {"method.correction": 1.0}}.

    Costs of updates that the settings do not give are measured first. Calling it again with the same settings resumes,
    with the costs measured before. Each run is a process of its own with settings.threads threads, on this machine or,
    where `on` is `ray` or `ray://HOST:PORT`, on those of a Ray cluster that share the folder (docs/scaling.md).
    """
    folder = Path(out)
    if from_scratch:
        tree = settings.model_dump(mode="json")
        tree["start"] = {}
        settings = settings_from(tree)
    chosen = (*method_rows(methods), *own_rows(settings, rows or {}))
    if not chosen:
        raise UserError("methods: name at least one method, for example likelihood or actor-critic, or give a row")
    trained = train_rows(settings, chosen, num_seeds, folder, jobs, on=on)
    differ = [str(row) for row in chosen if row.overrides]
    comparison = compare_experiments(
        trained.folders,
        beam=settings.compare.beam,
        title=settings.name,
        configuration=to_yaml(trained.settings),
        notes=(
            f"Equal compute: {budget(trained.settings):,.0f} likelihood updates for every method after the shared "
            f"actor, the critic's pre-training included. {trained.costs}",
            *([f"Rows that differ from the recipe: {'; '.join(differ)}."] if differ else []),
        ),
        overrides=_find_moved_text([run for runs in trained.folders.values() for run in runs], settings),
    )
    content = {
        "comparison.json": json.dumps(seal(comparison.to_dict()), indent=1),
        REPORT_FILE: render_page(comparison),
        CURVES_FILE: draw_curves(comparison.curves, comparison.score_name),
        "table.md": markdown_table(comparison),
    }
    write_files(folder, content)
    return comparison, folder


@dataclass(frozen=True)
class TrainedRows:
    """The runs of each row by seed, the settings with the costs that were counted, and a sentence about those."""

    folders: dict[str, list[Path]]
    settings: Settings
    costs: str


def train_rows(
    settings: Settings,
    rows: Sequence[Row],
    num_seeds: int,
    folder: Path,
    jobs: int,
    split: str = "test",
    may_diverge: bool = False,
    on: str | None = None,
) -> TrainedRows:
    """Train the shared actor and critics, then every row with equal compute; finished runs of the folder are kept.

    The split they will be evaluated on is read first: a wrong path is told before anything starts.
    """
    set_up_logging()
    _require_described(settings)
    with placed_on(on) as start:  # that nobody answers there is told before anything is read or written
        task = recipe_task(settings, logging.INFO)
        if in_epochs(settings):
            settings = in_updates(settings, task.epoch_size)  # budgets are counted in updates
        own = {row.label: row.settings(settings) for row in rows}
        task.fingerprint()
        task.evaluation_set(split)
        _check_scores(settings, own, task)  # before costs are measured, which takes minutes
        # Their costs before those of rows, which are told as multiples of their methods'.
        methods = tuple(dict.fromkeys(row.method for row in rows))
        costed = with_costs(settings, methods, folder, task)
        rows = rows_with_costs(costed, rows, folder, task)
        check_budget(costed, rows)
        runs = plan_runs(costed, rows, num_seeds, folder)
        Jobs(runs, lambda run: own_costs(run_settings(costed, run), settings), jobs, may_diverge, start).run()
    # A row's own critic is a run of that row too, and no result.
    folders = {row.label: [run.folder for run in runs if run.row == row and not run.is_pre_training] for row in rows}
    return TrainedRows(folders, costed, describe_costs(settings, costed, rows))


def _require_described(settings: Settings) -> None:
    """Refuse parts that were passed as objects: the processes of a comparison build every part from the settings."""
    kinds = {"actor": settings.actor.kind, "critic": settings.critic.kind, "score": settings.score.name}
    for name, kind in (kinds | {"task": settings.data.task}).items():
        if kind == OBJECT:
            raise UserError(
                f"{name}: compare trains in processes of their own, which cannot be given an object; name a class or "
                "function of a module that can be imported, or train the runs by Trainer and give what it "
                "returns to compare_runs"
            )


def _find_moved_text(runs: Sequence[Path], settings: Settings) -> list[str]:
    """Return as overrides where text of some runs lies now.

    All runs are asked: of a comparison that was moved before it was done, those that ended later name the new place.
    """
    return next((moved for run in runs if (moved := moved_text(run, settings))), [])


def _check_scores(settings: Settings, own: Mapping[str, Settings], task: Task) -> None:
    """Try the score of every row, and refuse rows that could not stand in one table."""
    check_score(settings, task)
    # By signature: rows may differ in how rewards are paid (score.normalise) where what is reported is one score.
    reported = build_score(settings).signature()
    for label, each in own.items():
        if each.score == settings.score:  # tried with the recipe's
            continue
        if build_score(each).signature() != reported:
            raise UserError(f"row '{label}': score: reports another score than the recipe; compare rows by one score")
        check_score(each, task)


def write_files(folder: Path, content: Mapping[str, str]) -> None:
    """Write files by name, each whole or not at all."""
    for name, text in content.items():
        try:
            write_whole(folder / name, text)
        except OSError as error:
            raise UserError(f"out: cannot write {folder / name}: {error.strerror or error}") from None


def print_comparison(comparison: Comparison, folder: Path) -> None:
    """Print what a person wants to see first: table, plot, and where the report is."""
    console = open_console()
    console.print(comparison_table(comparison))
    notes = [*list_caveats(comparison), *comparison.notes]
    places = [f"curves: {folder / CURVES_FILE}", f"report: {folder / REPORT_FILE}"]
    for text in (terminal_plot(comparison.curves, comparison.score_name), *notes, *places):
        console.print(text, markup=False, highlight=False)
