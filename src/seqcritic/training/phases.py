"""The phases of Algorithm 2: which of them a run goes through, their learning rates, and when they stop."""

from __future__ import annotations

from collections.abc import Sequence

from seqcritic.config import CriticPhaseSettings, PhaseSettings, Settings
from seqcritic.training.progress import Progress

RISE = 1.05  # what counts as growth of the TD error, over the lowest before it


def planned_phases(settings: Settings) -> list[str]:
    """Return the phases a run goes through; what it starts from a trained network is left out."""
    phases = []
    if settings.start.actor is None and settings.phases.actor.updates:
        phases.append("actor")
    if settings.method.needs_critic and settings.start.critic is None and settings.phases.critic.updates:
        phases.append("critic")
    if settings.phases.train.updates:
        phases.append("train")
    return phases


def learning_rate(phase: PhaseSettings, update: int) -> float:
    """Return the rate of an update (counted from 0): constant, or linear down to the final rate; less in a warm-up."""
    rate = phase.learning_rate
    if phase.final_learning_rate is not None and phase.updates > 1:
        rate += update / (phase.updates - 1) * (phase.final_learning_rate - phase.learning_rate)
    return rate * min(1.0, (update + 1) / phase.warm_up) if phase.warm_up else rate


def reason_to_end(rules: PhaseSettings, progress: Progress) -> str:
    """Return why a phase should end at an evaluation before its last update, if it should."""
    if not isinstance(rules, CriticPhaseSettings):
        stale = rules.patience is not None and progress.stale_evaluations >= rules.patience
        return f"no better score in {rules.patience} evaluations" if stale else ""
    wanted, reached = rules.explained_variance, progress.explained_variance
    if wanted is not None and reached is not None and reached >= wanted:
        return f"the critic explains {100 * reached:.0f} % of the variance of held-out returns"
    if rules.patience is not None and has_stopped_growing(progress.td_errors, rules.patience):
        return "its TD error has stopped growing"
    return ""


def has_stopped_growing(errors: Sequence[float], patience: int) -> bool:
    """Tell whether the TD error, having grown, has not exceeded its peak for `patience` intervals.

    A fresh critic's error falls at first while it learns the mean; then it grows while the values spread back from
    the end of the sequence, and the authors stop shortly after that. The peak is therefore sought after the first
    rise by more than noise, and an error that never rose so is still settling.
    """
    rises = (index for index in range(1, len(errors)) if errors[index] > RISE * min(errors[:index]))
    rise = next(rises, None)
    if rise is None:
        return False
    peak = max(range(rise, len(errors)), key=errors.__getitem__)
    return len(errors) - 1 - peak >= patience
