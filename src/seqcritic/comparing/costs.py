"""What updates cost where a comparison runs: given by the recipe, or measured once and kept in the comparison's folder.

Budgets and numbers of updates follow from the costs, so a comparison that is resumed must have those it began with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from seqcritic.comparing.plan import BUDGET_METHOD, critic_of
from seqcritic.config import Settings
from seqcritic.contracts.task import Task
from seqcritic.digests import seal, unseal, write_whole
from seqcritic.errors import UserError
from seqcritic.settings_io import settings_from, with_method
from seqcritic.training.calibration import CRITIC, UNIT, measure_seconds
from seqcritic.training.environment import environment
from seqcritic.training.watching import watched_steps

COSTS_FILE = "costs.json"
# At most so many, and few beside what the comparison itself will train.
WARM_UP_UPDATES = 600
ROUNDS = 20
FEWEST_ROUNDS = 5


def with_costs(settings: Settings, labels: Sequence[str], folder: Path, task: Task) -> Settings:
    """Return the settings with the cost of every update that a comparison of these methods counts.

    What compare.costs gives is taken, the rest is read from the folder, and what is in neither is measured and written
    there.
    """
    path = folder / COSTS_FILE
    wanted = [name for name in needed_costs(settings, labels) if name not in settings.compare.costs]
    if not wanted:
        return settings
    stored = _read(path)
    if missing := [name for name in wanted if name not in stored]:
        stored |= _measure(settings, missing, task)
        _write(path, stored)
    tree = settings.model_dump(mode="json")
    tree["compare"]["costs"] |= {name: stored[name] for name in wanted}
    try:
        return settings_from(tree)
    except UserError as error:
        raise UserError(f"{path} is damaged: {error}") from None


def own_costs(run: Settings, given: Settings) -> Settings:
    """Return a run's settings without measured costs that do not count in it.

    Another method, added to a comparison later, then leaves the settings of the runs before it as they were.
    """
    counted = {CRITIC} if run.method.needs_critic else set()
    if run.phases.train.updates:
        counted.add(run.method.label)
    tree = run.model_dump(mode="json")
    costs = tree["compare"]["costs"]
    tree["compare"]["costs"] = {
        name: cost for name, cost in costs.items() if name in given.compare.costs or name in counted
    }
    return settings_from(tree)


def needed_costs(settings: Settings, labels: Sequence[str]) -> list[str]:
    """Return the names of all costs that count, but for likelihood's, which is the unit."""
    names = list(labels)
    if any(critic_of(with_method(settings, label)) for label in labels):
        names.append(CRITIC)
    if settings.compare.budget is None:
        names += [CRITIC, BUDGET_METHOD]
    return [name for name in dict.fromkeys(names) if name != UNIT]


def describe_costs(given: Settings, settings: Settings, labels: Sequence[str]) -> str:
    """Return which costs were counted with, and where each is from."""

    def write(names: list[str]) -> str:
        return ", ".join(f"{name} {settings.compare.cost(name):.2f}" for name in names)

    names = [*labels, *(name for name in needed_costs(given, labels) if name not in labels)]
    told = [name for name in names if name == UNIT or name in given.compare.costs]
    measured = [name for name in names if name not in told]
    parts = [f"by the recipe: {write(told)}"] if told else []
    parts += [f"measured here before it began: {write(measured)}"] if measured else []
    return f"Cost of one update in likelihood updates, {'; '.join(parts)}."


def _measure(settings: Settings, names: list[str], task: Task) -> dict[str, float]:
    """Return the costs of these updates relative to likelihood's."""
    warm_up = min(WARM_UP_UPDATES, 1 + settings.phases.actor.updates // 10)
    rounds = min(ROUNDS, max(FEWEST_ROUNDS, settings.phases.train.updates // 20))
    print(f"measuring what an update costs here: {', '.join([UNIT, *names])}", file=sys.stderr, flush=True)
    seconds = measure_seconds(settings, names, task, warm_up, rounds, watched_steps)
    unit = seconds[UNIT] / settings.compare.cost(UNIT)
    costs = {name: round(seconds[name] / unit, 3) for name in names}
    told = ", ".join(f"{name} {cost:.2f}" for name, cost in costs.items())
    print(f"measured in updates of likelihood of {seconds[UNIT]:.3g} s: {told}", file=sys.stderr, flush=True)
    return costs


def _read(path: Path) -> dict[str, float]:
    """Return the costs measured before, none where there is no file."""
    if not path.is_file():
        return {}
    try:
        costs = unseal(json.loads(path.read_text(encoding="utf-8")), required=True)["costs"]
        return {str(name): float(cost) for name, cost in costs.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is damaged ({error}); give compare.costs as they stand in the runs' config.yaml, and remove it"
        ) from None


def _write(path: Path, costs: dict[str, float]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(seal({"costs": costs, "environment": environment()}), indent=1))
    except OSError as error:
        raise UserError(f"--out: cannot write {path}: {error.strerror or error}") from None
