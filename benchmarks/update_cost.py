"""What an update of each method costs relative to a likelihood update: the figures of `compare.costs`.

    python benchmarks/update_cost.py RECIPE [section.key=value …]

All methods are built from one recipe and timed in turns, one update each a round, so that other load on the machine
falls on all of them alike; the medians of the CPU time of the updates are divided. The actor and critic are first
trained for some updates, because samples of an untrained actor are longer. What changes over a phase, as the width of a
training beam, changes over the rounds.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

from seqcritic.data.task import build_task
from seqcritic.method_settings import TYPICAL_COSTS
from seqcritic.settings_io import load_recipe, with_method
from seqcritic.training.checkpoint import load_weights
from seqcritic.training.environment import set_up_process
from seqcritic.training.learner import Learner
from seqcritic.training.rewards import build_score

WARM_UP_UPDATES = 600
ROUNDS = 60


def main() -> None:
    """Print one line a method."""
    settings = load_recipe(sys.argv[1], sys.argv[2:])
    set_up_process(settings.threads)
    data = build_task(settings.data)
    size, seed = settings.training.batch, settings.seed
    position = 0

    def update(learner: Learner, progress: float) -> float:
        nonlocal position
        batch = data.training_batch(position, size, seed)
        position += size
        started = time.process_time()
        learner.update(batch, 1e-4, progress)
        return time.process_time() - started

    score = build_score(settings.score, data)

    def learner_of(label: str) -> Learner:
        return Learner(with_method(settings, label), data.num_source_tokens, data.num_target_tokens, score)

    warm = learner_of("likelihood")
    warm.start_phase("actor")
    for index in range(WARM_UP_UPDATES):
        warm.update(data.training_batch(index * size, size, seed), settings.phases.actor.learning_rate)

    updates: dict[str, Callable[[float], float]] = {}
    for label in TYPICAL_COSTS:
        learner = learner_of("actor-critic" if label == "critic" else label)
        load_weights(learner.networks.actor, warm.actor_weights(), "warm-up")
        learner.start_phase("critic" if label == "critic" else "train")
        updates[label] = lambda progress, learner=learner: update(learner, progress)
    times: dict[str, list[float]] = {label: [] for label in updates}
    for made in range(ROUNDS):
        for label, run in updates.items():
            times[label].append(run(made / ROUNDS))

    medians = {label: statistics.median(seconds) for label, seconds in times.items()}
    load = os.getloadavg()[0]
    print(f"# {settings.name}: threads {settings.threads}, {ROUNDS} rounds, load average {load:.1f}")
    for label, median in medians.items():
        print(f"    {label}: {median / medians['likelihood']:.2f}  # {1000 * median:.1f} ms of CPU time")


if __name__ == "__main__":
    main()
