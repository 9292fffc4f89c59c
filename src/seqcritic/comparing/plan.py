"""The runs of a comparison, what each waits for, and how many updates make their compute equal.

Compute is counted in likelihood updates after the actor's pre-training, so that a comparison is reproducible on a
busy machine. A method that needs a critic pays for its pre-training out of the same budget. Methods share a critic
where they ask the same of it: soft values, which count entropies, are pre-trained apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqcritic.config import Settings
from seqcritic.errors import UserError
from seqcritic.settings_io import settings_from, with_method
from seqcritic.training.checkpoint import read_description
from seqcritic.training.model import find_weights

CRITIC_METHOD = "actor-critic"
BUDGET_METHOD = "actor-critic+likelihood"  # whose cost is the budget where none is given
# The shared critics by the name of their run, and the method whose settings each is trained with.
CRITICS = {"critic": CRITIC_METHOD, "soft-critic": "entropy-actor-critic"}


@dataclass(frozen=True)
class PlannedRun:
    """One run of a comparison: a folder, and the runs that must be finished before its settings are known."""

    kind: str  # "actor", a name of CRITICS or a method's label
    seed: int
    folder: Path
    needs: tuple[Path, ...]
    row: str = ""  # of an ablation


def plan_runs(settings: Settings, labels: tuple[str, ...], num_seeds: int, out: Path) -> list[PlannedRun]:
    """Return all runs, those that others wait for first."""
    methods = {label: with_method(settings, label) for label in labels}
    critics = {label: critic_of(method) for label, method in methods.items()}
    # Methods without a critic go first: they can run beside its pre-training.
    ordered = sorted(labels, key=lambda label: methods[label].method.needs_critic)
    planned: list[PlannedRun] = []
    for seed in range(settings.seed, settings.seed + num_seeds):
        folder = out / f"seed-{seed}"
        actor = () if settings.start.actor else (folder / "actor",)
        if actor:
            planned.append(PlannedRun("actor", seed, folder / "actor", ()))
        planned += [PlannedRun(name, seed, folder / name, actor) for name in CRITICS if name in critics.values()]
        for label in ordered:
            critic = critics[label]
            planned.append(PlannedRun(label, seed, folder / label, (*actor, folder / critic) if critic else actor))
    return planned


def critic_of(settings: Settings) -> str | None:
    """Return the name of the critic's run that a method waits for, or None where it needs none."""
    if not settings.method.needs_critic or settings.start.critic:
        return None
    return "soft-critic" if settings.method.temperature else "critic"


def budget(settings: Settings) -> float:
    """Return the compute every method gets after the actor's pre-training, in likelihood updates."""
    if settings.compare.budget is not None:
        return settings.compare.budget
    cost = settings.compare.cost
    phases = settings.phases
    return phases.critic.updates * cost("critic") + phases.train.updates * cost(BUDGET_METHOD)


def run_settings(settings: Settings, run: PlannedRun) -> Settings:
    """Return the settings of a planned run; what it needs is finished."""
    if run.kind == "actor":
        return _with(with_method(settings, "likelihood"), run.seed, {"start": {}, "train_updates": 0})
    start: dict[str, Any] = {"actor": settings.start.actor or str(run.folder.parent / "actor")}
    if run.kind in CRITICS:
        return _with(with_method(settings, CRITICS[run.kind]), run.seed, {"start": start, "train_updates": 0})
    method = with_method(settings, run.kind)
    spent = 0.0
    if method.method.needs_critic:
        critic = critic_of(method)
        start["critic"] = str(run.folder.parent / critic) if critic else settings.start.critic
        spent = read_description(find_weights(start["critic"]))["progress"]["compute"]
    return _with(method, run.seed, {"start": start, "train_updates": _affordable(settings, run.kind, spent)})


def check_budget(settings: Settings, labels: tuple[str, ...]) -> None:
    """Refuse a budget that the critic's pre-training will use up, before it is trained, where that can be known."""
    rules = settings.phases.critic
    if rules.explained_variance is None and rules.patience is None:
        for label in labels:
            if critic_of(with_method(settings, label)):
                _affordable(settings, label, rules.updates * settings.compare.cost("critic"))


def _affordable(settings: Settings, label: str, spent: float) -> int:
    """Return how many updates of a method the budget leaves after what was spent on its critic."""
    updates = round((budget(settings) - spent) / settings.compare.cost(label))
    if updates < 1:
        raise UserError(
            f"compare.budget: {budget(settings):g} leaves nothing for {label} after the critic's pre-training, which "
            f"costs {spent:g}; give more, or make phases.critic.updates fewer"
        )
    return updates


def _with(settings: Settings, seed: int, change: dict[str, Any]) -> Settings:
    tree = settings.model_dump(mode="json")
    tree["seed"] = seed
    tree["start"] = change["start"]
    tree["phases"]["train"]["updates"] = change["train_updates"]
    return settings_from(tree)
