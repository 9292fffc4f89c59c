"""Intervals and p-values of corpus scores by the bootstrap: of test sentences, and of seeds where there are several.

Shapes: N sentences, K summands of the score, S seeds (runs), R = NUM_RESAMPLES.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqcritic.contracts.score import Array, Score
from seqcritic.data.corruption import derive_seed

NUM_RESAMPLES = 10_000


def resampled_scores(runs: Sequence[Array], metric: Score, seed: int = 0) -> Array:
    """Return the corpus scores [R, S] of runs [N, K] on bootstrap samples of the sentences they share.

    The draws depend only on the seed and the number of sentences, so two calls on the same test set resample the same
    sentences.
    """
    size, width = runs[0].shape
    together = np.concatenate(runs, axis=1)  # [N, S · K]
    generator = np.random.default_rng(derive_seed(seed, "bootstrap", size))
    totals = np.empty((NUM_RESAMPLES, together.shape[1]))
    for index in range(NUM_RESAMPLES):
        # A resample is a count of each sentence; sums of summands are then one product, and no text is scored again.
        times_drawn = np.bincount(generator.integers(0, size, size), minlength=size)
        totals[index] = times_drawn @ together
    scores: Array = metric.of_totals(totals.reshape(NUM_RESAMPLES, len(runs), width))
    return scores


def interval(runs: Sequence[Array], metric: Score) -> tuple[float, float]:
    """Return the 95 % bootstrap interval, over sentences, of the mean corpus score of the runs."""
    low, high = np.percentile(resampled_scores(runs, metric).mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def paired_p_value(runs: Sequence[Array], baseline: Sequence[Array], metric: Score, shared_seeds: bool = True) -> float:
    """Return the two-sided bootstrap p-value of the difference of two methods on the same sentences.

    Every resample draws sentences, the same for all runs, and seeds, both with replacement. With `shared_seeds` run s
    of both methods has the same seed and they are drawn as a pair; otherwise each method's are drawn by themselves. p
    is the fraction of resamples in which the difference changes its sign, doubled, counted so that it is never 0.
    """
    observed = _mean_score(runs, metric) - _mean_score(baseline, metric)
    # Then no side is the wrong one to count.
    if observed == 0:
        return 1.0
    # Both calls draw the same sentences, which is what makes the test a paired one.
    ours, theirs = resampled_scores(runs, metric), resampled_scores(baseline, metric)  # [R, S]
    generator = np.random.default_rng(derive_seed(0, "seeds", len(runs)))
    if shared_seeds:
        differences = _mean_of_drawn(ours - theirs, generator)
    else:
        differences = _mean_of_drawn(ours, generator) - _mean_of_drawn(theirs, generator)
    against = int((differences >= 0).sum() if observed < 0 else (differences <= 0).sum())
    # The observed data counts as one resample of its own: p is never 0, however many there are.
    return min(1.0, 2 * (against + 1) / (NUM_RESAMPLES + 1))


def _mean_of_drawn(scores: Array, generator: np.random.Generator) -> Array:
    """Return the means [R] of scores [R, S] over as many seeds as there are, drawn anew for every resample."""
    drawn = generator.integers(0, scores.shape[1], scores.shape)
    mean: Array = np.take_along_axis(scores, drawn, axis=1).mean(axis=1)
    return mean


def _mean_score(runs: Sequence[Array], metric: Score) -> float:
    return float(np.mean([metric.of_totals(run.sum(axis=0)) for run in runs]))
