"""Runs on their test sets, greedily and by beam search, and the figures of a method's seeds together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from seqcritic.contracts.score import Score
from seqcritic.decoding.search import GREEDY, AnySearch, Search
from seqcritic.evaluation.bootstrap import interval, paired_p_value
from seqcritic.evaluation.run import RunEvaluation
from seqcritic.evaluation.stored import StoredEvaluations
from seqcritic.report.comparison import BeamScore
from seqcritic.training.model import Model
from seqcritic.training.run_folder import read_settings


@dataclass(frozen=True)
class EvaluatedRun:
    """One run on its test set: by the comparison's search and, where asked for, by a beam with the ρ tuned for it."""

    folder: Path
    score: Score
    evaluation: RunEvaluation
    beam: RunEvaluation | None
    search: Search


class TestScore(TypedDict):
    """The fields that the comparison's search and beam search have in common in a row."""

    score: float
    low: float
    high: float
    p_value: float | None
    seed_scores: tuple[float, ...]


def evaluate_run(
    run: Path | Model, label: str, beam: int | None, overrides: Sequence[str] = (), search: AnySearch = GREEDY
) -> EvaluatedRun:
    """Evaluate a run, as far as it has not been evaluated before; progress is shown with the run's label."""
    folder = run.place if isinstance(run, Model) else run
    stored = StoredEvaluations(run, f"{label}, seed {read_settings(folder).seed}", overrides)
    evaluation, score = stored.on_test(search), stored.model.score
    if beam is None:
        return EvaluatedRun(folder, score, evaluation, None, GREEDY)
    # Tuned for each run: one ρ for all would suit some methods better than others.
    by_beam = stored.tuned(beam)
    return EvaluatedRun(folder, score, evaluation, stored.on_test(by_beam), by_beam)


def score_on_test(runs: Sequence[EvaluatedRun], baseline: Sequence[EvaluatedRun], metric: Score) -> TestScore:
    """Return the test score of a method's seeds, tested against a baseline's unless that is empty."""
    ours, theirs = ([run.evaluation for run in group] for group in (runs, baseline))
    return _test_score(ours, theirs, metric, have_same_seeds(runs, baseline))


def beam_score(runs: Sequence[EvaluatedRun], baseline: Sequence[EvaluatedRun], metric: Score) -> BeamScore | None:
    """Return the same figures for beam search, or None where the runs were evaluated greedily alone."""
    ours, theirs = ([run.beam for run in group if run.beam is not None] for group in (runs, baseline))
    if not ours:
        return None
    # Beside the score, since a method's seeds may differ in it.
    rhos = tuple(run.search.length_reward for run in runs)
    return BeamScore(runs[0].search.width, rhos, **_test_score(ours, theirs, metric, have_same_seeds(runs, baseline)))


def have_same_seeds(runs: Sequence[EvaluatedRun], baseline: Sequence[EvaluatedRun]) -> bool:
    """Tell whether two methods have the same seeds in the same order, so that their runs are pairs."""
    ours, theirs = ([read_settings(run.folder).seed for run in group] for group in (runs, baseline))
    return ours == theirs


def signature_of_tuned(runs: Sequence[EvaluatedRun]) -> str:
    """Return the beam signature of runs with a tuned length reward each: `rho:tuned-on-valid` instead of a number.

    Of runs in different precision, which greedy search does not tell, there are two.
    """
    found = {re.sub(r"\|rho:[^|]*", "|rho:tuned-on-valid", run.beam.signature) for run in runs if run.beam is not None}
    return " and ".join(sorted(found))


def _test_score(
    ours: Sequence[RunEvaluation], theirs: Sequence[RunEvaluation], metric: Score, shared_seeds: bool
) -> TestScore:
    runs, baseline = ([evaluation.statistics for evaluation in group] for group in (ours, theirs))
    # [N, K] of each run: nothing is searched or scored again for all the resamples.
    low, high = interval(runs, metric)
    return TestScore(
        score=float(np.mean([evaluation.score for evaluation in ours])),
        low=low,
        high=high,
        p_value=paired_p_value(runs, baseline, metric, shared_seeds) if baseline else None,
        seed_scores=tuple(evaluation.score for evaluation in ours),
    )
