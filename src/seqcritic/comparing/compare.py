"""A comparison: one shared pre-trained actor (and critic) a seed, every method from it with equal compute."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seqcritic.comparing.gather import compare_experiments
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import budget, check_budget, plan_runs, run_settings
from seqcritic.config import Settings
from seqcritic.data.task import build_task
from seqcritic.errors import UserError
from seqcritic.method_settings import METHODS, MIXED, MIXED_LABELS
from seqcritic.report.comparison import Comparison
from seqcritic.report.curves import draw_curves
from seqcritic.report.page import render_page
from seqcritic.report.tables import markdown_table
from seqcritic.settings_io import set_leaf, settings_from, to_yaml, with_method
from seqcritic.training.watching import watched

COMPARISON_FILE = "comparison.json"
REPORT_FILE = "report.html"
CURVES_FILE = "curves.svg"
TABLE_FILE = "table.md"


def compare(
    settings: Settings,
    methods: tuple[str, ...],
    num_seeds: int = 1,
    out: str | Path = "runs/compare",
    jobs: int = 1,
    from_scratch: bool = False,
) -> tuple[Comparison, Path]:
    """Train the methods, evaluate them on test, and write table, curves and report into `out`.

    Calling it again with the same settings resumes. Each run is a process of its own with settings.threads threads.
    """
    folder = Path(out)
    labels = expand_labels(methods)
    if not labels:
        raise UserError("--methods: name at least one method, for example likelihood,actor-critic")
    if from_scratch:
        tree = settings.model_dump(mode="json")
        set_leaf(tree, "start", {})
        settings = settings_from(tree)
    runs = plan_runs(settings, labels, num_seeds, folder)
    check_budget(settings, labels)
    # Read once here: a wrong path is told before anything starts.
    task = build_task(settings.data, lambda line: print(line, file=sys.stderr, flush=True))
    task.fingerprint()
    task.evaluation_set("test")
    Jobs(runs, lambda run: run_settings(settings, run), jobs).run()
    experiments = {label: [run.folder for run in runs if run.kind == label] for label in labels}
    comparison = compare_experiments(
        experiments,
        beam=settings.compare.beam,
        watch=watched,
        title=settings.name,
        configuration=to_yaml(settings),
        notes=(_compute_note(settings, labels),),
    )
    _write(folder, comparison)
    return comparison, folder


def expand_labels(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels without repetition; `all` stands for every method, `all+likelihood` for every mixture."""
    groups = {"all": tuple(METHODS), "all" + MIXED: MIXED_LABELS}
    stripped = (label.strip() for label in methods)
    return tuple(dict.fromkeys(each for label in stripped if label for each in groups.get(label, (label,))))


def _compute_note(settings: Settings, labels: tuple[str, ...]) -> str:
    with_critic = any(with_method(settings, label).method.needs_critic for label in labels)
    names = [*labels, "critic"] if with_critic else list(labels)
    typical = {name for name in names if name != "likelihood" and name not in settings.compare.costs}
    told = [f"{name} {settings.compare.cost(name):.2f}" for name in names if name not in typical]
    assumed = [f"{name} {settings.compare.cost(name):.2f}" for name in names if name in typical]
    costs = ", ".join(told) + (f"; typical ones, not measured: {', '.join(assumed)}" if assumed else "")
    return (
        f"Equal compute: {budget(settings):,.0f} likelihood updates for every method after the shared actor, the "
        f"critic's pre-training included. Cost of one update in likelihood updates, by the recipe: {costs}."
    )


def _write(folder: Path, comparison: Comparison) -> None:
    content = {
        COMPARISON_FILE: json.dumps(comparison.to_dict(), indent=1),
        REPORT_FILE: render_page(comparison),
        CURVES_FILE: draw_curves(comparison.curves, comparison.score_name),
        TABLE_FILE: markdown_table(comparison),
    }
    for name, text in content.items():
        try:
            (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"--out: cannot write {folder / name}: {error.strerror or error}") from None
