"""The rows of the paper's ablation (its Table 5) as single overrides, and the runs they take.

Every row is actor-critic without the likelihood term, from one shared actor, with a critic of its own: the changed
setting counts in the critic's pre-training too. A row whose setting the recipe has anyway is the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seqcritic.comparing.plan import CRITIC_METHOD, PlannedRun, run_settings
from seqcritic.config import Settings
from seqcritic.errors import UserError
from seqcritic.settings_io import flatten, set_leaf, settings_from, with_method

BASELINE = "baseline"
PAPER_BASELINE = 23.16


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


def choose_rows(wanted: tuple[str, ...]) -> tuple[Override, ...]:
    """Return the rows of these names, or of these kinds (`gamma_phi`), in the table's order; all for none."""
    names = [name.strip() for name in wanted if name.strip()]
    kinds = dict.fromkeys(row.name.partition("=")[0] for row in ROWS)
    for name in names:
        if name not in (BASELINE, *kinds, *(row.name for row in ROWS)):
            known = ", ".join(row.name for row in ROWS)
            raise UserError(f"--rows: no row '{name}'; known: {known}, or a kind: {', '.join(kinds)}")
    return tuple(row for row in ROWS if not names or row.name in names or row.name.partition("=")[0] in names)


@dataclass(frozen=True)
class AblationPlan:
    """Runs to be made, and the folder of each row's joint training by seed."""

    runs: list[PlannedRun]
    folders: dict[str, list[Path]]
    overrides: dict[Path, Override]  # by the folder of a run that has one


def plan_ablation(settings: Settings, rows: tuple[Override, ...], num_seeds: int, out: Path) -> AblationPlan:
    """Return the runs of the baseline and of these rows, those that others wait for first."""
    if settings.start.critic is not None:
        raise UserError("start.critic: every row of an ablation trains a critic of its own; leave it out")
    own = flatten(with_method(settings, CRITIC_METHOD).model_dump(mode="json"))
    plan = AblationPlan([], {name: [] for name in (BASELINE, *(row.name for row in rows))}, {})
    for seed in range(settings.seed, settings.seed + num_seeds):
        folder = out / f"seed-{seed}"
        actor = () if settings.start.actor else (folder / "actor",)
        if actor:
            plan.runs.append(PlannedRun("actor", seed, folder / "actor", ()))
        _add_row(plan, BASELINE, None, seed, folder, actor)
        for row in rows:
            if own[row.key] == row.value:
                plan.folders[row.name].append(plan.folders[BASELINE][-1])
            else:
                _add_row(plan, row.name, row, seed, folder, actor)
    return plan


def _add_row(
    plan: AblationPlan, name: str, override: Override | None, seed: int, folder: Path, actor: tuple[Path, ...]
) -> None:
    place = folder / name.replace("=", "-")
    critic = PlannedRun("critic", seed, place / "critic", actor, name)
    joint = PlannedRun(CRITIC_METHOD, seed, place / CRITIC_METHOD, (*actor, critic.folder), name)
    plan.runs.extend([critic, joint])
    plan.folders[name].append(joint.folder)
    if override is not None:
        plan.overrides.update({critic.folder: override, joint.folder: override})


def ablated_settings(settings: Settings, plan: AblationPlan, run: PlannedRun, out: Path) -> Settings:
    """Return the settings of a planned run; the row's override comes last."""
    if run.kind == "actor":
        return run_settings(settings, run)
    tree = settings.model_dump(mode="json")
    set_leaf(tree, "start.actor", settings.start.actor or str(out / f"seed-{run.seed}" / "actor"))
    tree = run_settings(settings_from(tree), run).model_dump(mode="json")
    override = plan.overrides.get(run.folder)
    if override is not None:
        set_leaf(tree, override.key, override.value)
    return settings_from(tree)
