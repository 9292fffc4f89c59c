"""Judging an actor: greedy predictions, the corpus score with its interval, and its signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import numpy.typing as npt

from seqcritic.config import Settings
from seqcritic.data.corruption import derive_seed
from seqcritic.data.spelling import EvaluationSet, SpellingData
from seqcritic.decoding.sampling import greedy
from seqcritic.models.actor import Actor
from seqcritic.scores.edit_distance import CharacterErrorRate

NUM_RESAMPLES = 10_000
Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """Predictions of an evaluation set and each sentence's share of the score: Σ errors / Σ lengths."""

    predictions: list[str]
    errors: Column
    lengths: Column

    @property
    def score(self) -> float:
        """The corpus score."""
        return float(self.errors.sum() / self.lengths.sum())


def judge(
    actor: Actor,
    data: SpellingData,
    evaluation_set: EvaluationSet,
    capped: bool,
    between_batches: Callable[[], None] = lambda: None,
) -> Judgement:
    """Predict greedily and score; `between_batches` may raise to break off."""
    predictions: list[str] = []
    for batch in evaluation_set.batches:
        predictions += data.texts(greedy(actor, batch.sources, batch.source_mask))
        between_batches()
    errors, lengths = CharacterErrorRate(capped).statistics(predictions, evaluation_set.references)
    return Judgement(predictions, np.array(errors), np.array(lengths))


def resampled_scores(errors: Column, lengths: Column, seed: int = 0) -> Column:
    """Return the corpus scores of bootstrap samples of the sentences; the same draws for the same seed and size."""
    generator = np.random.default_rng(derive_seed(seed, "bootstrap", len(errors)))
    scores = np.empty(NUM_RESAMPLES)
    for index in range(NUM_RESAMPLES):
        rows = generator.integers(0, len(errors), len(errors))
        scores[index] = errors[rows].sum() / lengths[rows].sum()
    return scores


def interval(errors: Column, lengths: Column) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the corpus score over sentences."""
    low, high = np.percentile(resampled_scores(errors, lengths), [2.5, 97.5])
    return float(low), float(high)


def paired_p_value(errors: Column, baseline_errors: Column, lengths: Column) -> float:
    """Return the two-sided paired bootstrap p-value of the difference of two scores on the same sentences.

    The share of resamples in which the difference changes its sign, doubled, counted so that it is never 0.
    """
    differences = resampled_scores(errors - baseline_errors, lengths)
    observed = (errors - baseline_errors).sum()
    if observed == 0:
        return 1.0
    against = int((differences >= 0).sum() if observed < 0 else (differences <= 0).sum())
    return min(1.0, 2 * (against + 1) / (NUM_RESAMPLES + 1))


def signature(settings: Settings, split: str, num_sentences: int) -> str:
    """Return what a reader needs to know to obtain the same figure."""
    data = settings.data
    parts = {
        "score": "CER" + (":capped" if settings.score.capped else ""),
        "split": split,
        "sentences": num_sentences,
        "L": data.length,
        "noise": data.noise,
        "evaluation_seed": data.evaluation_seed,
        "search": "greedy",
        "rapidfuzz": version("rapidfuzz"),
        "seqcritic": version("seqcritic"),
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())
