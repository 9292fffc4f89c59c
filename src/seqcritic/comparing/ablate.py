"""The paper's ablation (its Table 5): actor-critic with one setting changed at a time, as rows of a comparison.

Every row is actor-critic without the likelihood term, from one shared actor, with a critic of its own: the changed
setting counts in the critic's pre-training too. A row whose setting the recipe has anyway is the baseline. Scores are
those of validation, as in the paper; nothing is evaluated on test.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seqcritic.comparing.compare import train_rows, write_files
from seqcritic.comparing.gather import explained_at_start
from seqcritic.comparing.plan import budget
from seqcritic.comparing.rows import Row
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score
from seqcritic.files import seal
from seqcritic.report.ablation import Ablation, AblationRow, list_ablation_columns
from seqcritic.report.charts import draw_ablation
from seqcritic.report.tables import markdown_columns, open_console, terminal_columns
from seqcritic.settings.io import flatten, to_yaml
from seqcritic.settings.tree import Settings
from seqcritic.training.environment import environment
from seqcritic.training.tracking import read_metrics
from seqcritic.training.train import is_finished

METHOD = "actor-critic"
BASELINE = "baseline"
PAPER_BASELINE = 23.16
PICTURE_FILE = "ablation.svg"


@dataclass(frozen=True)
class Override:
    """One row: its name, what it changes, and the validation BLEU that the paper found for it."""

    name: str
    key: str
    value: float | bool
    paper: float
    remark: str = ""


ROWS = (
    Override("gamma_phi=0.001", "method.gamma_phi", 0.001, PAPER_BASELINE),
    Override("gamma_phi=0.01", "method.gamma_phi", 0.01, 23.03),
    Override("gamma_phi=0.1", "method.gamma_phi", 0.1, 22.80, "still progresses"),
    Override("gamma_phi=1", "method.gamma_phi", 1.0, 8.14, "target network crucial"),
    Override("gamma_theta=0.001", "method.gamma_theta", 0.001, PAPER_BASELINE),
    Override("gamma_theta=1", "method.gamma_theta", 1.0, 22.88, "delayed actor moderate"),
    Override("no-shaping", "score.shaping", False, 22.61, "shaping moderate"),
    Override("no-td", "method.temporal_difference", False, 16.36, "TD crucial (by its table)"),
    Override("lambda_c=0.003", "method.variance_penalty", 0.003, 22.48),
    Override("lambda_c=0.001", "method.variance_penalty", 0.001, PAPER_BASELINE),
    Override("lambda_c=0.0001", "method.variance_penalty", 0.0001, 23.15),
    Override("lambda_c=0.000001", "method.variance_penalty", 0.000001, 23.10, "good from 1e-3 to 1e-6"),
    Override("lambda_c=0.00000001", "method.variance_penalty", 0.00000001, 22.72),
    Override("lambda_c=0", "method.variance_penalty", 0.0, 20.55, "penalty important"),
)


def ablate(
    settings: Settings,
    names: Sequence[str] = (),
    num_seeds: int = 1,
    out: str | Path = "runs/ablate",
    jobs: int = 1,
) -> tuple[Ablation, Path]:
    """Train the baseline and the rows of these names, and write table, picture and JSON into `out`.

    Calling it again with the same settings resumes. A row whose numbers stop being finite has diverged, which is its
    result; it is tried again from its last checkpoint by the next call.
    """
    folder = Path(out)
    chosen = choose_rows(names)
    trained = train_rows(settings, ablation_rows(settings, chosen), num_seeds, folder, jobs, "valid", may_diverge=True)
    score = build_score(settings)
    baseline = Override(BASELINE, "", False, PAPER_BASELINE)
    # A row that is not among the trained ones has the recipe's own value: it is the baseline.
    of_rows = {row: trained.folders.get(row.name, trained.folders[BASELINE]) for row in (baseline, *chosen)}
    ablation = Ablation(
        title=settings.name,
        score_name=score.name,
        lower_is_better=not score.higher_is_better,
        start_scores=tuple(_valid_scores(place).get(0, math.nan) for place in of_rows[baseline]),
        rows=tuple(
            _gather_row(row, places, places == of_rows[baseline], score.higher_is_better)
            for row, places in of_rows.items()
        ),
        configuration=to_yaml(trained.settings),
        environment=environment(),
        notes=(
            f"Every row has the compute of {budget(trained.settings):,.0f} likelihood updates after the shared actor, "
            f"the pre-training of its own critic included. {trained.costs} Scores are the best of the greedy "
            "validations after the first update; nothing was evaluated on test.",
        ),
    )
    content = {
        "ablation.json": json.dumps(seal(ablation.to_dict()), indent=1) + "\n",
        PICTURE_FILE: draw_ablation(ablation),
        "table.md": "\n".join([markdown_columns(list_ablation_columns(ablation)), "", *ablation.notes, ""]),
    }
    write_files(folder, content)
    return ablation, folder


def choose_rows(wanted: Sequence[str]) -> tuple[Override, ...]:
    """Return the rows of these names, or of these kinds (`gamma_phi`), in the table's order; all for none."""
    names = [name.strip() for name in wanted if name.strip()]
    kinds = dict.fromkeys(row.name.partition("=")[0] for row in ROWS)
    for name in names:
        if name not in (BASELINE, *kinds, *(row.name for row in ROWS)):
            known = ", ".join(row.name for row in ROWS)
            raise UserError(f"rows: no row '{name}'; known: {known}, or a kind: {', '.join(kinds)}")
    return tuple(row for row in ROWS if not names or row.name in names or row.name.partition("=")[0] in names)


def ablation_rows(settings: Settings, chosen: Sequence[Override]) -> tuple[Row, ...]:
    """Return the baseline and the rows that differ from it, all with the cost of an update of actor-critic."""
    if settings.start.critic is not None:
        raise UserError("start.critic: every row of an ablation trains a critic of its own; leave it out")
    baseline = Row(BASELINE, METHOD, own_critic=True)
    own = flatten(baseline.settings(settings).model_dump(mode="json"))
    # A row with the recipe's own value is the baseline and is not trained twice.
    changed = [row for row in chosen if own[row.key] != row.value]
    return baseline, *(Row(row.name, METHOD, {row.key: row.value}, own_critic=True) for row in changed)


def _gather_row(row: Override, folders: Sequence[Path], is_baseline: bool, higher_is_better: bool) -> AblationRow:
    """Return the figures of a row; those of a seed whose critic diverged are not numbers."""
    valid = [_valid_scores(folder) for folder in folders]
    better = max if higher_is_better else min
    # At update 0 every row is the shared actor: counting it would hide a row that only gets worse.
    after = [[score for update, score in scores.items() if update > 0] for scores in valid]
    return AblationRow(
        name=row.name,
        is_baseline=is_baseline,
        seed_scores=tuple(better(scores, default=math.nan) for scores in after),
        last_scores=tuple(scores[-1] if scores else math.nan for scores in after),
        critic_explains=explained_at_start(folders),
        num_diverged=sum(not is_finished(folder) for folder in folders),  # whatever else stops a run raises
        updates=max((update for scores in valid for update in scores), default=0),
        paper_score=row.paper,
        remark=row.remark,
    )


def _valid_scores(folder: Path) -> dict[int, float]:
    """Return the validation scores of a row's joint training by update, the shared actor's at 0."""
    records = [record for record in read_metrics(folder) if record["kind"] == "valid" and record["phase"] == "train"]
    return {record["update"]: record["valid_score"] for record in records}


def print_ablation(ablation: Ablation, folder: Path) -> None:
    """Print the table, and where the picture is."""
    console = open_console()
    columns = [column for column in list_ablation_columns(ablation) if column.name not in ("seeds", "remark")]
    console.print(terminal_columns(columns, ablation.title))
    for text in (*ablation.notes, f"picture: {folder / PICTURE_FILE}"):
        console.print(text, markup=False, highlight=False)
