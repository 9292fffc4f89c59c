"""Our side: whole updates of a Learner, beam search, greedy evaluation. Runs where seqcritic is installed."""

from __future__ import annotations

import functools
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from matrix_shapes import Products, ReadOutRows, layers_of
from seqcritic.config import Settings
from seqcritic.data.batch import Batch, EvaluationSet, pad
from seqcritic.data.spelling import EVALUATION_BATCH, SpellingData
from seqcritic.data.vocabulary import END
from seqcritic.data_settings import SpellingSettings
from seqcritic.decoding.beam import beam_search
from seqcritic.decoding.sampling import sample
from seqcritic.evaluation import corpus_metric, judge
from seqcritic.methods import rollout
from seqcritic.models.actor import Actor
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.score import Score
from seqcritic.settings_io import load_recipe, settings_from
from seqcritic.training.learner import Learner
from side_by_side.layers import count
from side_by_side.serve import serve
from side_by_side.workloads import WORKLOADS, Pair, Workload

NUM_BATCHES = 8
LEARNING_RATE = 1e-3
NEVER = -1e4


def settings_of(workload: Workload, method: str, tied: bool) -> Settings:
    """Return what a recipe for the workload would hold: the paper's settings with the workload's sizes."""
    sizes = {"embedding": workload.size, "hidden": workload.size, "attention": workload.size, "tied": tied}
    return settings_from(
        {
            "name": workload.name,
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


class TimedScore:
    """A score with a stop-watch on its CPU time."""

    def __init__(self, score: Score) -> None:
        self.score = score
        self.seconds = 0.0

    def prefix_scores(
        self, predictions: Tensor, prediction_lengths: Tensor, references: Tensor, reference_lengths: Tensor
    ) -> Tensor:
        """Score as usual and add the time it took."""
        started = time.process_time()
        scores = self.score.prefix_scores(predictions, prediction_lengths, references, reference_lengths)
        self.seconds += time.process_time() - started
        return scores


class Training:
    """Updates of one method; `warm_up` makes likelihood updates first, `lengths` may force those of the samples."""

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        method = request.get("method", request["kind"])
        settings = settings_of(workload, method, request.get("tied", False))
        self.score = TimedScore(BleuScore(None) if request.get("score") == "bleu" else EditDistanceScore(False))
        self.learner = Learner(settings, workload.vocabulary, workload.vocabulary, self.score)
        self.batches = cycle([batch_of(pairs) for pairs in workload.batches(NUM_BATCHES)])
        self._set_lengths(request.get("lengths", "natural"))
        self.learner.start_phase("actor")
        if request.get("warm_up"):
            self._update(request["warm_up"])
        self.learner.start_phase("train")

    def _set_lengths(self, lengths: str) -> None:
        """Decide where samples end: at their end token, like a trained actor's, or exactly like the references."""
        if lengths != "natural":
            deviation = 2 if lengths == "trained" else 0
            rollout.sample = functools.partial(sample_to_length, deviation)
        if lengths == "exact":
            with torch.no_grad():
                self.learner.networks.actor.decoder.read_out.bias[END] = NEVER

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
        told = {name: measured[name] for name in ("length_ratio",) if name in measured}
        return told | {"loss": measured.get("likelihood_loss", measured.get("actor_loss")), "score": self.score.seconds}

    def _update(self, steps: int) -> dict[str, float]:
        rows = [self.learner.update(next(self.batches), LEARNING_RATE) for _ in range(steps)]
        return {name: sum(row[name] for row in rows) / steps for name in rows[0]}


def sample_to_length(deviation: int, actor: Actor, memory: Any, caps: Tensor, generator: torch.Generator) -> Any:
    """Sample with the lengths of a trained actor: an untrained one hardly ever ends, so its caps decide.

    A row takes as many steps as its reference, give or take `deviation`; the caps given are those of `roll_out`.
    """
    deviations = torch.arange(len(caps)) % (2 * deviation + 1) - deviation
    with_end = caps - rollout.EXTRA_STEPS + 1
    return sample(actor, memory, (with_end + deviations).clamp(min=1), generator)


class MatrixProducts(Training):
    """The bare products of a likelihood update on the first batch."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request | {"method": "likelihood"})
        actor, batch = self.learner.settings.actor, next(self.batches)
        features = actor.embedding if actor.tied else 3 * actor.hidden
        vocabulary = WORKLOADS[request["workload"]].vocabulary
        with ReadOutRows(features, vocabulary) as seen:
            self.learner.update(batch, LEARNING_RATE)
        # Where the update does not go through PyTorch's products there is nothing to see: count the padded batch.
        self.read_out_rows = seen.rows or batch.references.numel()
        self.products = Products(layers_of(actor, vocabulary, batch, self.read_out_rows))

    def describe(self) -> dict[str, Any]:
        """Return the amount of work."""
        return self.products.describe() | {"read_out_rows": self.read_out_rows}

    def run(self, steps: int) -> dict[str, Any]:
        """Do all products so many times."""
        return self.products.run(steps)


class Memory(Training):
    """Updates, and the peak of the resident memory of this process."""

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates and read the peak, which getrusage would inherit from the parent process."""
        told = super().run(steps)
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return told | {"peak_bytes": int(line.split()[1]) * 1024}
        raise RuntimeError("this system does not tell the peak of resident memory")


class Beam:
    """Beam search; a step is one batch of `sentences`. The end token's bias keeps it from ever being chosen."""

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        settings = settings_of(workload, "likelihood", request.get("tied", False))
        generator = torch.Generator().manual_seed(1)
        self.actor = Actor(settings.actor, workload.vocabulary, workload.vocabulary, generator)
        with torch.no_grad():
            self.actor.decoder.read_out.bias[END] = NEVER
        (pairs,) = workload.batches(1)
        self.batch = batch_of(pairs[: request["sentences"]])
        self.width, self.length = request["width"], request["length"]

    def describe(self) -> dict[str, Any]:
        """Return what the actor is made of."""
        return count(self.actor)

    def run(self, steps: int) -> dict[str, Any]:
        """Search, and say how many tokens a hypothesis has."""
        caps = torch.full((len(self.batch),), self.length)
        for _ in range(steps):
            found = beam_search(self.actor, self.batch.sources, self.batch.source_mask, self.width, caps=caps)
        return {"length": min(len(hypotheses[0].tokens) for hypotheses in found)}


class RecipeTraining(Training):
    """Updates with the sizes and the batch of a packaged spelling recipe."""

    def __init__(self, request: dict[str, Any]) -> None:
        settings = load_recipe(request["recipe"], ["method.name=likelihood"])
        workload = recipe_workload(settings)
        self.score = TimedScore(EditDistanceScore(False))
        self.learner = Learner(settings, workload.vocabulary, workload.vocabulary, self.score)
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
        self.task = SpellingData(settings.data)
        self.metric = corpus_metric(settings)
        workload = recipe_workload(settings, EVALUATION_BATCH)
        pairs = [pair for batch in workload.batches(-(-request["sentences"] // EVALUATION_BATCH)) for pair in batch]
        pairs = pairs[: request["sentences"]]
        batches = [
            batch_of(pairs[first : first + EVALUATION_BATCH]) for first in range(0, len(pairs), EVALUATION_BATCH)
        ]
        sources, references = (
            [text for batch in batches for text in self.task.texts(getattr(batch, side))]
            for side in ("sources", "references")
        )
        self.evaluation_set = EvaluationSet(batches, sources, references)

    def run(self, steps: int) -> dict[str, Any]:
        """Judge the whole set so many times."""
        for _ in range(steps):
            judgement = judge(self.learner.networks.actor, self.task, self.evaluation_set, self.metric)
        lengths = [len(text) for text in judgement.predictions]
        return {"cer": judgement.score, "mean_length": sum(lengths) / len(lengths)}


def recipe_workload(settings: Settings, batch: int | None = None) -> Workload:
    """Return the workload with a spelling recipe's sizes."""
    data = settings.data
    assert isinstance(data, SpellingSettings)
    vocabulary = SpellingData(data).num_source_tokens
    size = settings.actor.hidden
    return Workload(settings.name, vocabulary, size, data.length, data.length, batch or settings.training.batch)


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    serve(
        {
            "likelihood": Training,
            "actor-critic": Training,
            "reinforce": Training,
            "products": MatrixProducts,
            "memory": Memory,
            "beam": Beam,
            "recipe-training": RecipeTraining,
            "recipe-evaluation": Evaluation,
        }
    )
