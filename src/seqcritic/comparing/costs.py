"""What updates cost where a comparison runs: given by the recipe, or measured once and kept in the comparison's folder.

Budgets and numbers of updates follow from the costs, so a comparison that is resumed must have those it began with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from seqcritic.comparing.plan import BUDGET_METHOD, critic_of
from seqcritic.comparing.rows import Row
from seqcritic.contracts.task import Task
from seqcritic.errors import UserError
from seqcritic.files import seal, unseal, write_whole
from seqcritic.progress import log
from seqcritic.settings.io import settings_from, with_method
from seqcritic.settings.tree import Settings
from seqcritic.training.calibration import CRITIC, TRAIN, UNIT, measure_seconds
from seqcritic.training.environment import environment

COSTS_FILE = "costs.json"
# At most so many, and few beside what the comparison itself will train.
WARM_UP_UPDATES = 600
ROUNDS = 20
FEWEST_ROUNDS = 5


def with_costs(settings: Settings, labels: Sequence[str], folder: Path, task: Task) -> Settings:
    """Return the settings with the cost of an update of each of these methods, and of the critic.

    What compare.costs gives is taken, the rest is read from the folder, and what is in neither is measured and written
    there.
    """
    wanted = [name for name in needed_costs(settings, labels) if name not in settings.compare.costs]
    costs = _find_costs(folder, wanted, lambda missing: _measure(settings, missing, task))
    tree = settings.model_dump(mode="json")
    # Through validation again: a file that somebody has edited could hold a cost of 0 or text.
    tree["compare"]["costs"] |= costs
    try:
        return settings_from(tree)
    except UserError as error:
        raise UserError(f"{folder / COSTS_FILE} is damaged: {error}") from None


def rows_with_costs(settings: Settings, rows: Sequence[Row], folder: Path, task: Task) -> tuple[Row, ...]:
    """Return rows that know what their updates cost; `settings` have the costs of their methods.

    A row with settings of its own is timed in turns with its method as the recipe has it, whose cost its own is a
    multiple of; so is its critic's pre-training. A row that gives compare.costs is taken at its word.
    """
    unknown = {row.label: _unknown_costs(settings, row) for row in rows if row.own_cost}
    variants = {name: each for found in unknown.values() for name, each in found.items()}
    costs = _find_costs(folder, list(variants), lambda missing: _measure(settings, missing, task, variants))
    own = {
        label: {f"compare.costs.{cost}": costs[name] for name, (_, cost) in found.items()}
        for label, found in unknown.items()
    }
    return tuple(replace(row, overrides={**row.overrides, **own.get(row.label, {})}) for row in rows)


def _unknown_costs(settings: Settings, row: Row) -> dict[str, tuple[Settings, str]]:
    """Return the costs that a row does not give, by their names in the file: its settings, and which cost they vary."""
    own = row.settings(settings)
    # By all that a row changes: a label that is given other settings later is measured anew.
    names = {str(row): row.method} | ({f"{row} (critic)": CRITIC} if row.own_critic and critic_of(own) else {})
    return {name: (own, cost) for name, cost in names.items() if f"compare.costs.{cost}" not in row.overrides}


def own_costs(run: Settings, given: Settings) -> Settings:
    """Return a run's settings without measured costs that do not count in it.

    Another method, added to a comparison later, then leaves the settings of the runs before it as they were.
    """
    used = {CRITIC} if run.method.needs_critic else set()
    if run.phases.train.updates:
        used.add(run.method.label)
    tree = run.model_dump(mode="json")
    costs = tree["compare"]["costs"]
    tree["compare"]["costs"] = {
        name: cost for name, cost in costs.items() if name in given.compare.costs or name in used
    }
    return settings_from(tree)


def needed_costs(settings: Settings, labels: Sequence[str]) -> list[str]:
    """Return the names of all costs that count, but for likelihood's, which is the unit."""
    names = list(labels)
    if any(critic_of(with_method(settings, label)) for label in labels):
        names.append(CRITIC)
    # Without a budget that of the paper's method is everybody's, and needs its costs.
    if settings.compare.budget is None:
        names += [CRITIC, BUDGET_METHOD]
    return [name for name in dict.fromkeys(names) if name != UNIT]


def describe_costs(given: Settings, settings: Settings, rows: Sequence[Row]) -> str:
    """Return a sentence that lists the costs used and says which were measured."""

    def write(names: list[str]) -> str:
        return ", ".join(f"{name} {settings.compare.cost(name):.2f}" for name in names)

    names = list(dict.fromkeys(row.method for row in rows))
    names += [name for name in needed_costs(given, names) if name not in names]
    told = [name for name in names if name == UNIT or name in given.compare.costs]
    measured = [name for name in names if name not in told]
    own = [f"{row.label} {row.settings(settings).compare.cost(row.method):.2f}" for row in rows if row.own_cost]
    parts = [f"by the recipe: {write(told)}"] if told else []
    parts += [f"measured here before it began: {write(measured)}"] if measured else []
    parts += [f"of rows with settings of their own: {', '.join(own)}"] if own else []
    return f"Cost of one update in likelihood updates, {'; '.join(parts)}."


def _find_costs(folder: Path, wanted: list[str], measure: Callable[[list[str]], dict[str, float]]) -> dict[str, float]:
    """Return costs by name from the folder's file; those it lacks are measured and added to it."""
    path = folder / COSTS_FILE
    stored = _read(path) if wanted else {}  # a damaged file is in nobody's way where it is not needed
    if missing := [name for name in wanted if name not in stored]:
        # Measured once for all that is missing, in turns: a busy minute then slows all of them alike.
        stored |= measure(missing)
        _write(path, stored)
    return {name: stored[name] for name in wanted}


def _measure(
    settings: Settings, names: list[str], task: Task, variants: Mapping[str, tuple[Settings, str]] | None = None
) -> dict[str, float]:
    """Measure the costs of updates by name, in updates of likelihood.

    Variants have settings of their own and are timed beside what they vary, whose cost is known.
    """
    rows = {name: each for name, each in (variants or {}).items() if name in names}
    timed = [*dict.fromkeys(cost for _, cost in rows.values() if cost != UNIT), *names]
    # A fresh actor writes to the maximum length, a trained one stops: costs are measured with answers as long as they
    # will be.
    warm_up = min(WARM_UP_UPDATES, 1 + settings.phases.actor.updates // 10)
    rounds = min(ROUNDS, max(FEWEST_ROUNDS, settings.phases.train.updates // 20))
    log.info(f"measuring what an update costs here: {', '.join([UNIT, *timed])}")
    phases = {name: (own, CRITIC if cost == CRITIC else TRAIN) for name, (own, cost) in rows.items()}
    seconds = measure_seconds(settings, timed, task, warm_up, rounds, phases)
    varied = {name: rows[name][1] if name in rows else UNIT for name in names}
    costs = {
        name: round(settings.compare.cost(base) * seconds[name] / seconds[base], 3) for name, base in varied.items()
    }
    told = ", ".join(f"{name} {cost:.2f}" for name, cost in costs.items())
    log.info(f"measured in updates of likelihood of {seconds[UNIT]:.3g} s: {told}")
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
        path.parent.mkdir(parents=True, exist_ok=True)  # nothing has been trained here yet
        write_whole(path, json.dumps(seal({"costs": costs, "environment": environment()}), indent=1))
    except OSError as error:
        raise UserError(f"out: cannot write {path}: {error.strerror or error}") from None
