"""A comparison: one shared pre-trained actor (and critic) a seed, every method from it with equal compute."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seqcritic.comparing.costs import describe_costs, own_costs, with_costs
from seqcritic.comparing.gather import compare_experiments
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import budget, check_budget, plan_runs, run_settings
from seqcritic.config import Settings
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.data.task import build_task
from seqcritic.digests import seal, write_whole
from seqcritic.errors import UserError
from seqcritic.method_settings import MIXED, mixed_labels
from seqcritic.report.charts import draw_curves
from seqcritic.report.comparison import Comparison
from seqcritic.report.comparison_tables import markdown_table
from seqcritic.report.pages import render_page
from seqcritic.settings_io import set_leaf, settings_from, to_yaml
from seqcritic.training.rewards import try_score
from seqcritic.training.run_folder import moved_text
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

    Costs of updates that the settings do not give are measured first. Calling it again with the same settings resumes,
    with the costs measured before. Each run is a process of its own with settings.threads threads.
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
    # Read once here: a wrong path is told before anything starts.
    task = build_task(settings.data, lambda line: print(line, file=sys.stderr, flush=True))
    task.fingerprint()
    task.evaluation_set("test")
    try_score(settings, task)
    given, settings = settings, with_costs(settings, labels, folder, task)
    check_budget(settings, labels)
    Jobs(runs, lambda run: own_costs(run_settings(settings, run), given), jobs).run()
    experiments = {label: [run.folder for run in runs if run.kind == label] for label in labels}
    comparison = compare_experiments(
        experiments,
        beam=settings.compare.beam,
        watch=watched,
        title=settings.name,
        configuration=to_yaml(settings),
        notes=(_compute_note(given, settings, labels),),
        overrides=moved_text(runs[-1].folder, settings),
    )
    _write(folder, comparison)
    return comparison, folder


def expand_labels(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels without repetition; `all` stands for every method, `all+likelihood` for every mixture."""
    groups = {"all": tuple(registered_methods()), "all" + MIXED: mixed_labels()}
    stripped = (label.strip() for label in methods)
    return tuple(dict.fromkeys(each for label in stripped if label for each in groups.get(label, (label,))))


def _compute_note(given: Settings, settings: Settings, labels: tuple[str, ...]) -> str:
    return (
        f"Equal compute: {budget(settings):,.0f} likelihood updates for every method after the shared actor, the "
        f"critic's pre-training included. {describe_costs(given, settings, labels)}"
    )


def _write(folder: Path, comparison: Comparison) -> None:
    content = {
        COMPARISON_FILE: json.dumps(seal(comparison.to_dict()), indent=1),
        REPORT_FILE: render_page(comparison),
        CURVES_FILE: draw_curves(comparison.curves, comparison.score_name),
        TABLE_FILE: markdown_table(comparison),
    }
    for name, text in content.items():
        try:
            write_whole(folder / name, text)
        except OSError as error:
            raise UserError(f"--out: cannot write {folder / name}: {error.strerror or error}") from None
