"""The runs of a comparison, what each waits for, and how many updates make their compute equal.

Compute is counted in likelihood updates after the actor's pre-training, so that a comparison is reproducible on a
busy machine. A row that needs a critic pays for its pre-training out of the same budget. Methods share a critic
where they ask the same of it: soft values, which count entropies, are pre-trained apart. A row with settings of its own
has a critic of its own, for they count in its pre-training too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seqcritic.comparing.rows import CRITICS, Row
from seqcritic.errors import UserError
from seqcritic.settings.io import settings_from, with_method
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import read_description
from seqcritic.training.model import find_weights

BUDGET_METHOD = "actor-critic+likelihood"  # whose cost is the budget where none is given


@dataclass(frozen=True)
class PlannedRun:
    """One run of a comparison: a folder, and the runs that must be finished before its settings are known."""

    kind: str  # "actor", a name of CRITICS or a method's label
    seed: int
    folder: Path
    needs: tuple[Path, ...]
    row: Row | None = None  # None: shared by several
    start: Mapping[str, str] = field(default_factory=dict)  # where trained networks are, as the settings name them

    @property
    def is_pre_training(self) -> bool:
        """Whether it trains what another run starts from."""
        return self.kind == "actor" or self.kind in CRITICS

    @property
    def title(self) -> str:
        """What it is, for a person; a method's own row is not named twice."""
        title = f"pre-training the {self.kind.replace('-', ' ')}" if self.is_pre_training else self.kind
        return title if self.row is None or self.row.label == title else f"{self.row.label}, {title}"


def plan_runs(settings: Settings, rows: Sequence[Row], num_seeds: int, out: Path) -> list[PlannedRun]:
    """Return all runs, those that others wait for first."""
    own = {row.label: row.settings(settings) for row in rows}
    critics = {row.label: critic_of(own[row.label]) for row in rows}
    shared = {critics[row.label] for row in rows if not row.own_critic}
    # Methods without a critic go first: they can run beside its pre-training.
    ordered = sorted(rows, key=lambda row: own[row.label].method.needs_critic)
    planned: list[PlannedRun] = []
    for seed in range(settings.seed, settings.seed + num_seeds):
        folder = out / f"seed-{seed}"
        start = {"actor": settings.start.actor or str(folder / "actor")}
        actor = () if settings.start.actor else (folder / "actor",)
        if actor:
            planned.append(PlannedRun("actor", seed, folder / "actor", ()))
        planned += [PlannedRun(name, seed, folder / name, actor, None, start) for name in CRITICS if name in shared]
        for row in ordered:
            place, needs, found = folder / row.folder, actor, dict(start)
            if critic := critics[row.label]:
                path = place / critic if row.own_critic else folder / critic
                if row.own_critic:
                    planned.append(PlannedRun(critic, seed, path, actor, row, start))
                    # Beside its critic, below the row's folder.
                    place /= row.method
                needs, found["critic"] = (*actor, path), str(path)
            elif settings.start.critic and own[row.label].method.needs_critic:
                found["critic"] = settings.start.critic
            planned.append(PlannedRun(row.method, seed, place, needs, row, found))
    return planned


def critic_of(settings: Settings) -> str | None:
    """Return the name of the critic's run that a method waits for, or None where it needs none."""
    if not settings.method.needs_critic or settings.start.critic:
        return None
    return "soft-critic" if settings.method.temperature else "critic"


def budget(settings: Settings) -> float:
    """Return the compute every row gets after the actor's pre-training, in likelihood updates."""
    if settings.compare.budget is not None:
        return settings.compare.budget
    cost = settings.compare.cost
    phases = settings.phases
    return phases.critic.updates * cost("critic") + phases.train.updates * cost(BUDGET_METHOD)


def run_settings(settings: Settings, run: PlannedRun) -> Settings:
    """Return the settings of a planned run; what it needs is finished."""
    if run.row is not None:
        own = run.row.settings(settings)
    else:
        own = with_method(settings, CRITICS.get(run.kind, "likelihood"))
    updates = 0
    if not run.is_pre_training:
        critic = run.start.get("critic")
        # What it has really cost: its phase may have ended early.
        spent = read_description(find_weights(critic))["progress"]["compute"] if critic else 0.0
        updates = _affordable(budget(settings), own, spent)
    tree = own.model_dump(mode="json")
    tree |= {"seed": run.seed, "start": dict(run.start)}
    tree["phases"]["train"]["updates"] = updates  # 0 of a pre-training, which then has no such phase
    return settings_from(tree)


def check_budget(settings: Settings, rows: Sequence[Row]) -> None:
    """Refuse a budget that the critic's pre-training will use up, before it is trained, where that can be known."""
    for row in rows:
        own = row.settings(settings)
        if critic := critic_of(own):
            trained = own if row.own_critic else with_method(settings, CRITICS[critic])
            rules = trained.phases.critic
            # By such a rule the phase may end before it has spent all this.
            may_end = (rules.explained_variance, rules.patience, rules.flat, rules.token_correlation)
            if all(rule is None for rule in may_end):
                _affordable(budget(settings), own, rules.updates * trained.compare.cost("critic"))


def _affordable(given: float, own: Settings, spent: float) -> int:
    """Return the updates that a row can make with what its critic's pre-training leaves of the budget."""
    label = own.method.label
    updates = round((given - spent) / own.compare.cost(label))
    if updates < 1:
        raise UserError(
            f"compare.budget: {given:g} leaves nothing for {label} after the critic's pre-training, which "
            f"costs {spent:g}; give more, or make phases.critic.updates fewer"
        )
    return updates
