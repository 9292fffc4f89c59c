"""The share of an actor-critic update that goes into prefix rewards.

    python benchmarks/reward_share.py RECIPE [section.key=value …]

The score is timed inside real updates of a learner; both figures come from the same updates.
"""

from __future__ import annotations

import sys
import time

from torch import Tensor

from seqcritic.contracts.score import Scorable
from seqcritic.data.task import build_task
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import load_recipe, with_method
from seqcritic.training.environment import set_up_process
from seqcritic.training.learner import recipe_learner

NUM_UPDATES = 50


class TimedScore(EditDistanceScore):
    """The edit-distance score with a stop-watch."""

    seconds = 0.0

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Score as usual and add the time it took."""
        started = time.perf_counter()
        scores = super().prefix_scores(batch)
        self.seconds += time.perf_counter() - started
        return scores


def main() -> None:
    """Print the share in percent."""
    settings = with_method(load_recipe(sys.argv[1], sys.argv[2:]), "actor-critic")
    set_up_process(settings.threads)
    data = build_task(settings.data)
    size = settings.training.batch
    score = TimedScore(settings.score.normalise)
    learner = recipe_learner(settings, data.codec.num_source_tokens, data.codec.num_target_tokens, score)
    learner.start_phase("train")
    started = time.perf_counter()
    for index in range(NUM_UPDATES):
        learner.update(data.training_batch(index * size, size, settings.seed), 1e-4)
    total = time.perf_counter() - started
    print(
        f"{settings.name}: prefix rewards take {100 * score.seconds / total:.2f} % of an actor-critic update "
        f"({1000 * score.seconds / NUM_UPDATES:.2f} of {1000 * total / NUM_UPDATES:.1f} ms)"
    )


if __name__ == "__main__":
    main()
