"""Whole updates of a Learner on a workload, and what the benchmarks change of them: a stop-watch, samples' lengths."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch, pad
from seqcritic.contracts.score import Array, References, Scorable, Score
from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import sample
from seqcritic.methods import rollout
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.shared.token_score import TokenScore
from seqcritic.settings.io import settings_from
from seqcritic.settings.tree import Settings
from seqcritic.training.learner import recipe_learner
from side_by_side.layers import count
from side_by_side.workloads import WORKLOADS, Pair, Workload

NUM_BATCHES = 8
LEARNING_RATE = 1e-3
NEVER = -1e4


def settings_of(workload: Workload, method: str, tied: bool, precision: str = "float32") -> Settings:
    """Return what a recipe for the workload would hold: the paper's settings with the workload's sizes."""
    sizes = {name: workload.size for name in ("embedding", "hidden", "attention")}
    sizes |= {"tied": tied, "output_width": workload.output_width}
    return settings_from(
        {
            "name": workload.name,
            "precision": precision,
            "actor": sizes,
            "critic": sizes,
            "method": {"name": method},
            "training": {"batch": workload.batch},
        }
    )


def batch_of(pairs: list[Pair]) -> Batch:
    """Return pairs as a batch; number 0 is the end token."""
    return Batch(*pad([[token + 1 for token in source] for source, _ in pairs]), *pad(_targets(pairs)))


def _targets(pairs: list[Pair]) -> list[list[int]]:
    return [[token + 1 for token in target] for _, target in pairs]


class TimedScore(TokenScore):
    """Rewards with a stop-watch on their CPU time; nothing is reported."""

    def __init__(self, score: Score) -> None:
        self.timed = score
        self.seconds = 0.0

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Score as usual and add the time it took."""
        started = time.process_time()
        scores = self.timed.prefix_scores(batch)
        self.seconds += time.process_time() - started
        return scores

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Refuse."""
        raise NotImplementedError

    def of_totals(self, totals: Array) -> Array:
        """Refuse."""
        raise NotImplementedError

    def signature(self) -> list[str]:
        """Refuse."""
        raise NotImplementedError


class LengthLimit:
    """Sampling with the lengths of a trained actor: an untrained one hardly ever ends, so its maximum
    lengths decide.

    A row takes as many steps as its reference, give or take `deviation`; the maximum lengths given are those of
    `roll_out`.
    """

    def __init__(self, deviation: int) -> None:
        self.deviation = deviation
        self.calls = 0

    def __call__(self, actor: RecurrentActor, memory: Any, maximum_lengths: Tensor, *rest: Any) -> Any:
        """Sample as usual, with other maximum lengths."""
        self.calls += 1
        deviations = torch.arange(len(maximum_lengths)) % (2 * self.deviation + 1) - self.deviation
        with_end = maximum_lengths - actor.limits.beyond_reference + 1
        return sample(actor, memory, (with_end + deviations).clamp(min=1), *rest)


class Training:
    """Updates of one method; `warm_up` makes likelihood updates first, `lengths` may force those of the samples."""

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        method = request.get("method", request["kind"])
        settings = settings_of(workload, method, request.get("tied", False), request.get("precision", "float32"))
        self.score = TimedScore(BleuScore(None) if request.get("score") == "bleu" else EditDistanceScore(False))
        self.learner = recipe_learner(settings, workload.vocabulary, workload.vocabulary, self.score)
        self.batches = cycle([batch_of(pairs) for pairs in workload.batches(NUM_BATCHES)])
        self.limit = self._limit_lengths(request.get("lengths", "natural"))
        self.learner.start_phase("actor")
        if request.get("warm_up"):
            self._update(request["warm_up"])
        self.learner.start_phase("train")

    def _limit_lengths(self, lengths: str) -> LengthLimit | None:
        """Decide where samples end: at their end token, like a trained actor's, or exactly like the references."""
        if lengths == "natural":
            return None
        if lengths == "exact":
            with torch.no_grad():
                self.learner.networks.actor.decoder.output_layer.bias[END] = NEVER
        limit, before = LengthLimit(deviation=2 if lengths == "trained" else 0), rollout.sample
        # Several trainings of one process sample by the same function: its count is that of all.
        if isinstance(before, LengthLimit) and before.deviation == limit.deviation:
            return before
        rollout.sample = limit
        return limit

    def describe(self) -> dict[str, Any]:
        """Return what the actor is made of, and how many parameters the other networks have."""
        others = {
            f"parameters_of_{name}": count(network)["parameters"]
            for name, network in self.learner.networks.named().items()
            if name != "actor"
        }
        return count(self.learner.networks.actor) | others

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates; tell the loss, the samples' length over the references', and the time of the rewards."""
        self.score.seconds = 0.0
        measured = self._update(steps)
        if self.limit is not None and self.limit.calls < steps:
            raise RuntimeError(
                "updates no longer sample by `rollout.sample`, so lengths are not what they are said to be"
            )
        told = {name: measured[name] for name in ("length_ratio",) if name in measured}
        return told | {"loss": measured.get("likelihood_loss", measured.get("actor_loss")), "score": self.score.seconds}

    def _update(self, steps: int) -> dict[str, float]:
        rows = [self.learner.update(next(self.batches), LEARNING_RATE) for _ in range(steps)]
        return {name: sum(row[name] for row in rows) / steps for name in rows[0]}
