"""Updates and greedy evaluations as a run of a spelling recipe makes them."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from our_training import NUM_BATCHES, TimedScore, Training, batch_of
from seqcritic.contracts.batch import EVALUATION_BATCH, EvaluationSet
from seqcritic.data.spelling import SpellingTask
from seqcritic.evaluation.evaluate import build_score, evaluate_actor
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.data import SpellingSettings
from seqcritic.settings.io import load_recipe
from seqcritic.settings.tree import Settings
from seqcritic.training.learner import recipe_learner
from side_by_side.workloads import Workload


class RecipeTraining(Training):
    """Updates with the sizes and the batch of a packaged spelling recipe."""

    def __init__(self, request: dict[str, Any]) -> None:
        settings = load_recipe(request["recipe"], ["method.name=likelihood"])
        workload = recipe_workload(settings)
        self.score, self.limit = TimedScore(EditDistanceScore(False)), None
        self.learner = recipe_learner(settings, workload.vocabulary, workload.vocabulary, self.score)
        self.batches = cycle([batch_of(pairs) for pairs in workload.batches(NUM_BATCHES)])
        self.learner.start_phase("actor")
        self._update(request["warm_up"])
        self.evaluate_every = settings.training.evaluate_every

    def describe(self) -> dict[str, Any]:
        """Return the interval between evaluations too."""
        return super().describe() | {"evaluate_every": self.evaluate_every}


class Evaluation(RecipeTraining):
    """Greedy evaluation as a run does it every so many updates: search, texts and corpus score."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request)
        settings = self.learner.settings
        assert isinstance(settings.data, SpellingSettings)
        self.task = SpellingTask(settings.data)
        self.metric = build_score(settings)
        workload = recipe_workload(settings, EVALUATION_BATCH)
        pairs = [pair for batch in workload.batches(-(-request["sentences"] // EVALUATION_BATCH)) for pair in batch]
        pairs = pairs[: request["sentences"]]
        batches = [
            batch_of(pairs[first : first + EVALUATION_BATCH]) for first in range(0, len(pairs), EVALUATION_BATCH)
        ]
        sources, references = (
            [text for batch in batches for text in self.task.codec.texts(getattr(batch, side))]
            for side in ("sources", "references")
        )
        self.evaluation_set = EvaluationSet(batches, sources, references)

    def run(self, steps: int) -> dict[str, Any]:
        """Evaluate the whole set so many times."""
        for _ in range(steps):
            evaluated = evaluate_actor(self.learner.networks.actor, self.task, self.evaluation_set, self.metric)
        lengths = [len(text) for text in evaluated.predictions]
        return {"cer": evaluated.score, "mean_length": sum(lengths) / len(lengths)}


def recipe_workload(settings: Settings, batch: int | None = None) -> Workload:
    """Return the workload with a spelling recipe's sizes."""
    data = settings.data
    assert isinstance(data, SpellingSettings)
    vocabulary = SpellingTask(data).codec.num_source_tokens
    size = settings.actor.hidden
    return Workload(settings.name, vocabulary, size, data.length, data.length, batch or settings.training.batch)
