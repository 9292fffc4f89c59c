"""The phases of Algorithm 2: which of them a run goes through, their learning rates, and when they stop."""

from __future__ import annotations

from collections.abc import Sequence

from seqcritic.errors import UserError
from seqcritic.settings.tree import CriticPhaseSettings, PhaseSettings, Settings
from seqcritic.training.progress import Progress

RISE = 1.05  # what counts as growth of the TD error, over the lowest before it


def planned_phases(settings: Settings) -> list[str]:
    """Return the phases a run goes through; what it starts from a trained network is left out."""
    phases = []
    if settings.start.actor is None and _has_updates(settings.phases.actor):
        phases.append("actor")
    if settings.method.needs_critic and settings.start.critic is None and _has_updates(settings.phases.critic):
        phases.append("critic")
    if _has_updates(settings.phases.train):
        phases.append("train")
    return phases


def _has_updates(phase: PhaseSettings) -> bool:
    return phase.updates > 0 or phase.epochs is not None


def in_epochs(settings: Settings) -> bool:
    """Tell whether anything is told in epochs."""
    return settings.training.evaluate_epochs is not None or any(
        phase.epochs is not None for _, phase in settings.phases
    )


def in_updates(settings: Settings, epoch_size: int | None, num_processes: int = 1) -> Settings:
    """Return settings in which what is told in epochs is told in updates; a task without epochs refuses them."""
    phases, training = settings.phases, settings.training

    def count(epochs: float, key: str) -> int:
        if epoch_size is None:
            raise UserError(f"{key}: this task does not know how many examples an epoch has; give updates instead")
        # At least one: a phase must not vanish, and 0 updates between evaluations would be a division by zero.
        return max(1, round(epochs * epoch_size / (training.update_size * num_processes)))

    rules: dict[str, PhaseSettings] = dict(phases)
    for name, phase in rules.items():
        if phase.epochs is not None:
            updates = count(phase.epochs, f"phases.{name}.epochs")
            rules[name] = phase.model_copy(update={"updates": updates, "epochs": None})
        # For the refusal alone: `flat` stays in epochs, which `reason_to_end` counts in updates.
        if phase.flat is not None:
            count(phase.flat.epochs, f"phases.{name}.flat")
    if training.evaluate_epochs is not None:
        every = count(training.evaluate_epochs, "training.evaluate_epochs")
        training = training.model_copy(update={"evaluate_every": every, "evaluate_epochs": None})
    return settings.model_copy(update={"phases": phases.model_copy(update=rules), "training": training})


def is_flat(curve: Sequence[Sequence[float]], window: float, gain: float, higher_is_better: bool) -> bool:
    """Tell whether the best score of the last `window` updates is better than the best before by less than `gain`.

    `curve`: updates and scores. One evaluation must lie before the window, as that of update 0 does in time.
    """
    sign = 1 if higher_is_better else -1
    border = curve[-1][0] - window if curve else 0
    before = [sign * score for update, score in curve if update <= border]
    within = [sign * score for update, score in curve if update > border]
    return bool(before) and bool(within) and max(within) - max(before) < gain


def learning_rate(phase: PhaseSettings, update: int) -> float:
    """Return the rate of an update (counted from 0): constant, or linear down to the final rate; less in a warm-up."""
    rate = phase.learning_rate
    if phase.final_learning_rate is not None and phase.updates > 1:
        # So many steps lie between the first rate and the final one, which the last update has.
        rate += update / (phase.updates - 1) * (phase.final_learning_rate - phase.learning_rate)
    # From 1 on: at a rate of 0 the first update would move nothing.
    return rate * min(1.0, (update + 1) / phase.warm_up) if phase.warm_up else rate


def reason_to_end(rules: PhaseSettings, progress: Progress, higher_is_better: bool, epoch_updates: float) -> str:
    """Return why a phase should end at an evaluation before its last update, if it should.

    `epoch_updates`: how many updates an epoch has.
    """
    flat = rules.flat
    # A critic's curve is of correlations.
    rises = higher_is_better or isinstance(rules, CriticPhaseSettings)
    if flat is not None and is_flat(progress.curve, flat.epochs * epoch_updates, flat.gain, rises):
        return f"its last {flat.epochs:g} epochs brought less than {flat.gain:g}"
    if not isinstance(rules, CriticPhaseSettings):
        stale = rules.patience is not None and progress.stale_evaluations >= rules.patience
        return f"no better score in {rules.patience} evaluations" if stale else ""
    wanted, reached = rules.explained_variance, progress.explained_variance
    if wanted is not None and reached is not None and reached >= wanted:
        return f"the critic explains {100 * reached:.0f} % of the variance of held-out returns"
    known = progress.curve[-1][1] if progress.curve else 0.0
    if rules.token_correlation is not None and known >= rules.token_correlation:
        return f"the critic's token values correlate with the true ones by {known:.2f}"
    if rules.patience is not None and has_stopped_growing(progress.td_errors, rules.patience):
        return "its TD error has stopped growing"
    return ""


def has_stopped_growing(errors: Sequence[float], patience: int) -> bool:
    """Tell whether the TD error, having grown, has not exceeded its peak for `patience` intervals.

    A fresh critic's error falls at first while it learns the mean; then it grows while the values spread back from
    the end of the sequence, and the authors stop shortly after that. The peak is therefore sought after the first
    rise by more than noise, and an error that never rose so is still settling.
    """
    # Over the lowest before it, not over the last: an error that grows slowly has grown too.
    rises = (index for index in range(1, len(errors)) if errors[index] > RISE * min(errors[:index]))
    rise = next(rises, None)
    if rise is None:
        return False
    # Of equals the first: to reach a peak again is not to exceed it.
    peak = max(range(rise, len(errors)), key=errors.__getitem__)
    return len(errors) - 1 - peak >= patience


def update_cost(settings: Settings, phase: str) -> float:
    """Return what an update of a phase costs in likelihood updates, by the recipe's measured costs."""
    label = {"actor": "likelihood", "critic": "critic", "train": settings.method.label}[phase]
    return settings.compare.cost(label)
