"""Before the first update: what of the text a model cannot learn, and how much time and memory a run takes."""

from __future__ import annotations

import logging
import resource
import statistics
import sys
from dataclasses import dataclass

import torch

from seqcritic.contracts.task import Task
from seqcritic.data.pairs import PairsTask
from seqcritic.progress import set_up_logging
from seqcritic.settings.data import OBJECT
from seqcritic.settings.tree import PhaseSettings, Settings
from seqcritic.training.calibration import LEARNING_RATE, Clock
from seqcritic.training.environment import set_up_process
from seqcritic.training.parts import recipe_task
from seqcritic.training.phases import in_updates, planned_phases
from seqcritic.training.rewards import check_score
from seqcritic.training.start import check_start, load_start_actor

MOST_UNKNOWN = 0.02
MOST_LEFT_OUT = 0.1
NUM_REFERENCES = 2_000
TRIAL_UPDATES = 10
ENOUGH_UPDATES = 1_000  # a shorter run is over before its estimate is worth anything


@dataclass(frozen=True)
class Estimate:
    """What a run will take on this machine."""

    seconds: dict[str, float]
    """Of each phase, evaluations not counted."""
    megabytes: float
    """The most that the process had in memory at once."""

    def tell(self) -> str:
        """Return it in one line."""
        total = _duration(sum(self.seconds.values()))
        phases = ", ".join(f"{phase} {_duration(seconds)}" for phase, seconds in self.seconds.items())
        return (
            f"by {TRIAL_UPDATES} trial updates of each phase it will take about {total} ({phases}; evaluations come on "
            f"top, early stopping comes off) and {self.megabytes:,.0f} MB of memory"
        )


def look_ahead(settings: Settings) -> list[str]:
    """Return what a run by these settings will meet and take; a fault of text or score is a UserError."""
    set_up_logging()
    set_up_process(settings.threads)
    check_start(settings)
    task = recipe_task(settings, logging.INFO)
    task.fingerprint()  # reads the text, and finds its faults
    check_score(settings, task)
    return [*warnings_of(task), estimate(settings, task).tell()]


def warnings_of(task: Task) -> list[str]:
    """Return what a person should know of pairs before training on them, a line each."""
    if not isinstance(task, PairsTask):
        return []
    found = []
    pairs = task.training_pairs
    left_out = sum(pairs.skipped.values())
    if left_out > MOST_LEFT_OUT * pairs.num_read:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in pairs.skipped.items())
        found.append(
            f"warning: {100 * left_out / pairs.num_read:.0f} % of the training pairs are left out ({reasons}); "
            "a larger data.maximum_length keeps long ones"
        )
    examples = task.first_examples(NUM_REFERENCES)
    # One pair may be the same by chance.
    if len(examples) > 1 and all(source in targets for source, targets in examples):
        found.append("warning: source and target are the same in all validation pairs; there is nothing to learn")
    share = unknown_share(task)
    if share > MOST_UNKNOWN:
        found.append(
            f"warning: {100 * share:.1f} % of the tokens of the validation references are unknown, and no prediction "
            "can match them; raise data.target_tokens.size, or take data.target_tokens.kind=subwords, which know all"
        )
    return found


def unknown_share(task: Task) -> float:
    """Return which share of the tokens of validation references is unknown; of many, the first tell."""
    unknown = task.codec.special.unknown
    if unknown is None:
        return 0.0
    references = [targets[0] for _, targets in task.first_examples(NUM_REFERENCES)]
    tokens = [token for ids in task.codec.encode_references(references) for token in ids]
    return tokens.count(unknown) / max(len(tokens), 1)


def num_planned_updates(settings: Settings, task: Task) -> int:
    """Count the updates of all phases, if none ends early."""
    plan = in_updates(settings, task.epoch_size, 1)
    return sum(getattr(plan.phases, phase).updates for phase in planned_phases(settings))


def can_be_tried(settings: Settings) -> bool:
    """Tell whether other networks like these are made for a trial at once: pretrained ones may be large."""
    # A score that was passed as an object cannot be built again for the trial.
    return settings.actor.kind == settings.critic.kind == "gru" and settings.score.name != OBJECT


def estimate(settings: Settings, task: Task) -> Estimate:
    """Return what a run will take, by ten updates of each phase on networks of their own.

    No random number of the run is drawn here: networks, batches and samples have generators of their own.
    """
    plan, seconds = in_updates(settings, task.epoch_size, 1), {}
    # Torch's own generator is given back as it was, whoever draws from it.
    with torch.random.fork_rng():
        clock = Clock(settings, task)
        learner = clock.learner(settings)
        if settings.start.actor is not None:
            load_start_actor(settings, learner.networks.actor, task.codec)
        for phase in planned_phases(settings):
            rules: PhaseSettings = getattr(plan.phases, phase)
            learner.start_phase(phase)
            times = [clock.time_update(learner, LEARNING_RATE, made / TRIAL_UPDATES) for made in range(TRIAL_UPDATES)]
            seconds[phase] = statistics.median(times) * rules.updates
    if learner.device.type == "cuda":
        return Estimate(seconds, torch.cuda.max_memory_allocated() / 2**20)
    # Linux counts in kilobytes, macOS in bytes.
    return Estimate(
        seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
