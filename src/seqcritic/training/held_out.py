"""What a run measures on validation examples, and on a few training examples.

Of several processes the first measures; the others wait and are told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from seqcritic.contracts.batch import EvaluationSet
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Score
from seqcritic.contracts.task import Task
from seqcritic.evaluation.evaluate import evaluate_actor, other_scores, score_predictions, signature, surrogate
from seqcritic.methods.token_values import token_correlation
from seqcritic.settings.tree import Settings
from seqcritic.training.distributed import Processes
from seqcritic.training.explained_variance import explained_variance
from seqcritic.training.rewards import try_function
from seqcritic.training.sharding import whole


class HeldOut:
    """The validation set, and the training examples that are evaluated beside it, read when they are first needed."""

    def __init__(
        self,
        settings: Settings,
        task: Task,
        score: Score,
        networks: Networks,
        processes: Processes,
        between_batches: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._task = task
        self._score = score
        self._networks = networks
        self._processes = processes
        self._between_batches = between_batches
        self._sets: dict[str, EvaluationSet] = {}
        self._others = other_scores(score, settings, task.codec)
        # A fault is told by its setting, before anything is trained.
        for name, other in self._others.items():
            try_function(other, task, f"evaluation.also: {name}")
        self.other_scores: dict[str, float] = {}  # other scores of the last evaluation on valid, in the first process

    def score(self, split: str) -> float:
        """Return the corpus score of the present actor's greedy predictions."""

        def compute() -> float:
            actor, examples = self._networks.actor, self._examples(split)
            # A signal is obeyed between batches: a whole evaluation may take minutes.
            found = evaluate_actor(actor, self._task, examples, self._score, between_batches=self._between_batches)
            # From the same predictions: what costs is decoding, not scoring.
            if split == "valid":
                self.other_scores = {
                    name: score_predictions(found.predictions, examples, other).score
                    for name, other in self._others.items()
                }
            return found.score

        return self._by_first(compute)

    def _by_first(self, compute: Callable[[], float]) -> float:
        """Return what the first process computes; the others take part in gathering the weights it needs."""
        with whole(self._networks.named().values()):
            # All must see the same figure: stopping rules are decided by it in every process.
            return self._processes.from_first(compute)

    def measures(self) -> dict[str, float]:
        """Return the other scores of the last evaluation as metrics.jsonl names them."""
        return {f"valid_{name}": score for name, score in self.other_scores.items()}

    def tell(self) -> str:
        """Return the other scores of the last evaluation for a line of progress, or nothing."""
        told = [f"{name} {self._others[name].write(score)}" for name, score in self.other_scores.items()]
        return f"; {', '.join(told)}" if told else ""

    def explained_variance(self) -> float:
        """Return how much of the variance of returns the critic explains."""
        valid = self._examples("valid").batches
        return self._by_first(lambda: explained_variance(self._networks, valid, self._settings, self._score))

    def token_correlation(self) -> float:
        """Return how the critic's values of single tokens correlate with true ones."""
        actor, critic, valid = self._networks.actor, self._networks.critic, self._examples("valid").batches
        assert critic is not None, "asked for in its phase"
        return self._by_first(lambda: token_correlation(actor, critic, self._score, valid, self._settings.seed))

    @cached_property
    def signature(self) -> str:
        """What a reader must know of the validation scores that this run writes."""
        # Computed once: every checkpoint tells it, and what it says of the data takes a pass over the text.
        valid = self._examples("valid")
        trained, count = surrogate(self._score), valid.num_references
        return signature(
            self._task,
            self._score,
            "valid",
            len(valid.references),
            trained=trained,
            num_references=count,
            limits=self._networks.actor.limits,
        )

    def _examples(self, split: str) -> EvaluationSet:
        """Return the validation set, or the training examples that are evaluated beside it."""
        # Kept: choosing examples that are trained on takes a pass over the training text.
        if split not in self._sets:
            size, task = self._settings.training.train_examples, self._task
            self._sets[split] = task.training_sample(size) if split == "train" else task.evaluation_set(split)
        return self._sets[split]
