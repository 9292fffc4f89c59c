"""What an update of each method costs on this machine, in likelihood updates.

The methods are timed in turns, one update each a round, so that other load on the machine falls on all of them alike,
and medians are divided. An update is what a run does for it, fetching the batch included. The networks are the real
ones; the actor is `start.actor` or first learns for some updates, because samples of an untrained actor are longer.
What changes over a phase, as the width of a training beam, changes over the rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from seqcritic.contracts.task import Task
from seqcritic.evaluation.evaluate import build_score, introduce
from seqcritic.progress import Bar
from seqcritic.settings.io import with_method
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import load_weights
from seqcritic.training.environment import set_up_process
from seqcritic.training.learner import Learner, recipe_learner
from seqcritic.training.start import load_start_actor

UNIT = "likelihood"
CRITIC, TRAIN = "critic", "train"  # phases: an update of the critic's pre-training, and of joint training
# The rate does not change the time of an update; a small one keeps the actor what it is.
LEARNING_RATE = 1e-4

Variant = tuple[Settings, str]  # settings and the phase of the update


def measure_seconds(
    settings: Settings,
    labels: Sequence[str],
    task: Task,
    warm_up_updates: int,
    rounds: int,
    variants: Mapping[str, Variant] | None = None,
) -> dict[str, float]:
    """Return the median seconds of an update of likelihood and of every label, of which `critic` may be one.

    `variants` are labels that stand for settings instead of for a method.
    """
    set_up_process(settings.threads)
    clock = Clock(settings, task)
    timed = {label: _as_given(settings, label) for label in (UNIT, *labels) if label not in (variants or {})}
    timed |= variants or {}
    warm = clock.learner(timed[UNIT][0])
    if settings.start.actor is not None:
        load_start_actor(settings, warm.networks.actor, task.codec)
    else:
        warm.start_phase("actor")
        with Bar("an actor to measure with", warm_up_updates, "steps") as bar:
            for _ in bar.over(range(warm_up_updates)):
                clock.time_update(warm, settings.phases.actor.learning_rate, 0.0)
    learners = {label: clock.learner(own) for label, (own, _) in timed.items()}
    for label, learner in learners.items():
        # One actor for all: how long samples grow decides what most updates cost.
        load_weights(learner.networks.actor, warm.actor_weights(), "the actor to measure with")
        learner.start_phase(timed[label][1])  # after loading: target copies become what they are copies of
    seconds: dict[str, list[float]] = {label: [] for label in learners}
    with Bar("what updates cost", rounds, "steps") as bar:
        for made in bar.over(range(rounds)):
            for label, learner in learners.items():
                seconds[label].append(clock.time_update(learner, LEARNING_RATE, made / rounds))
    return {label: statistics.median(found) for label, found in seconds.items()}


def clock_of(settings: Settings, device: torch.device) -> Callable[[], float]:
    """Return the clock for updates: processor seconds on one thread, where what others run then hardly counts.

    Threads that wait for each other burn processor seconds too, and a device's work is not in them: there it is time.
    """
    return time.process_time if settings.threads == 1 and device.type == "cpu" else time.perf_counter


def _as_given(settings: Settings, label: str) -> Variant:
    """Return a method, or the critic's pre-training, as the recipe has it."""
    return (with_method(settings, "actor-critic"), CRITIC) if label == CRITIC else (with_method(settings, label), TRAIN)


class Clock:
    """Makes updates on the training batches of a task, one after the other, and times them."""

    def __init__(self, settings: Settings, task: Task) -> None:
        self.settings = settings
        self.task = task
        self.position = 0

    def learner(self, settings: Settings) -> Learner:
        """Return networks of their own, as settings describe them."""
        codec = self.task.codec
        # Scores that weigh tokens by how common they are read the validation references for it.
        score = introduce(build_score(settings, codec), lambda: self.task)
        return recipe_learner(settings, codec.num_source_tokens, codec.num_target_tokens, score)

    def time_update(self, learner: Learner, rate: float, progress: float) -> float:
        """Return the seconds of an update on the next batch, `progress` being the part of the phase that is over."""
        size = learner.settings.training.update_size
        clock = clock_of(learner.settings, learner.device)
        started = clock()
        learner.update(self.task.training_batch(self.position, size, self.settings.seed), rate, progress)
        if learner.device.type != "cpu":
            torch.accelerator.synchronize()  # what the device has been given is not yet done
        self.position += size
        return clock() - started
