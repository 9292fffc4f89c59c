"""The ablation: actor-critic with one setting changed at a time, the same budget for every row."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from seqcritic.comparing.ablation_plan import (
    BASELINE,
    PAPER_BASELINE,
    ROWS,
    AblationPlan,
    ablated_settings,
    choose_rows,
    plan_ablation,
)
from seqcritic.comparing.costs import describe_costs, own_costs, with_costs
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import CRITIC_METHOD, budget
from seqcritic.comparing.readiness import share_at_start
from seqcritic.config import Settings
from seqcritic.data.task import build_task
from seqcritic.digests import seal, write_whole
from seqcritic.errors import UserError
from seqcritic.evaluation import build_score
from seqcritic.report.ablation import Ablation, AblationRow, list_ablation_columns
from seqcritic.report.charts import draw_ablation
from seqcritic.report.tables import markdown_columns
from seqcritic.settings_io import to_yaml
from seqcritic.training.environment import environment
from seqcritic.training.rewards import try_score
from seqcritic.training.tracking import Record, read_metrics
from seqcritic.training.train import is_finished

ABLATION_FILE = "ablation.json"
PICTURE_FILE = "ablation.svg"
TABLE_FILE = "table.md"


def ablate(
    settings: Settings,
    names: tuple[str, ...] = (),
    num_seeds: int = 1,
    out: str | Path = "runs/ablate",
    jobs: int = 1,
) -> tuple[Ablation, Path]:
    """Train the baseline and the rows of these names, and write table, picture and JSON into `out`.

    Calling it again with the same settings resumes. A row whose numbers stop being finite has diverged, which is its
    result; it is tried again from its last checkpoint by the next call.
    """
    folder = Path(out)
    rows = choose_rows(names)
    plan = plan_ablation(settings, rows, num_seeds, folder)
    task = build_task(settings.data, lambda line: print(line, file=sys.stderr, flush=True))
    task.fingerprint()
    task.evaluation_set("valid")
    try_score(settings, task)
    costed = with_costs(settings, (CRITIC_METHOD,), folder, task)
    Jobs(plan.runs, lambda run: own_costs(ablated_settings(costed, plan, run, folder), settings), jobs).run()
    ablation = gather_ablation(costed, plan, describe_costs(settings, costed, (CRITIC_METHOD,)))
    _write(folder, ablation)
    return ablation, folder


def gather_ablation(settings: Settings, plan: AblationPlan, costs: str) -> Ablation:
    """Read the rows' validation scores; `costs` says what was counted."""
    score = build_score(settings)
    lower = not score.higher_is_better
    return Ablation(
        title=settings.name,
        score_name=score.name,
        lower_is_better=lower,
        start_scores=tuple(_start_score(folder) for folder in plan.folders[BASELINE]),
        rows=tuple(_row(name, folders, plan, lower) for name, folders in plan.folders.items()),
        configuration=to_yaml(settings),
        environment=environment(),
        notes=(
            f"Every row has the compute of {budget(settings):,.0f} likelihood updates after the shared actor, the "
            f"pre-training of its own critic included. {costs} Scores are the best of the greedy validations after the "
            "first update; nothing was judged on test.",
        ),
    )


def _row(name: str, folders: list[Path], plan: AblationPlan, lower_is_better: bool) -> AblationRow:
    known = {row.name: row for row in ROWS}
    judged = [_scores(folder) for folder in folders]
    better = min if lower_is_better else max
    after = [[record["valid_score"] for record in records if record["update"] > 0] for records in judged]
    return AblationRow(
        name=name,
        is_baseline=folders == plan.folders[BASELINE],
        seed_scores=tuple(better(scores) if scores else math.nan for scores in after),
        last_scores=tuple(scores[-1] if scores else math.nan for scores in after),
        critic_explains=share_at_start(folders),
        num_diverged=sum(not is_finished(folder) for folder in folders),
        updates=max((record["update"] for records in judged for record in records), default=0),
        paper_score=known[name].paper if name in known else PAPER_BASELINE,
        remark=known[name].remark if name in known else "",
    )


def _scores(folder: Path) -> list[Record]:
    """Return the validations of a row's joint training; none where its critic diverged."""
    return [record for record in read_metrics(folder) if record["kind"] == "valid" and record["phase"] == "train"]


def _start_score(folder: Path) -> float:
    """Return the score of the actor that a row starts from."""
    return next((record["valid_score"] for record in _scores(folder)), math.nan)


def _write(folder: Path, ablation: Ablation) -> None:
    notes = "".join(f"\n{note}\n" for note in ablation.notes)
    content = {
        ABLATION_FILE: json.dumps(seal(ablation.to_dict()), indent=1) + "\n",
        PICTURE_FILE: draw_ablation(ablation),
        TABLE_FILE: f"{markdown_columns(list_ablation_columns(ablation))}\n{notes}",
    }
    for name, text in content.items():
        try:
            write_whole(folder / name, text)
        except OSError as error:
            raise UserError(f"--out: cannot write {folder / name}: {error.strerror or error}") from None
