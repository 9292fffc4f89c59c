"""Judging a trained run on a split, with what a table and a report need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from seqcritic.data.spelling import SpellingData
from seqcritic.evaluation import corpus_metric, interval, judge, signature
from seqcritic.scores.score import Array
from seqcritic.settings_io import set_leaves, settings_from
from seqcritic.training.model import load_model


@dataclass(frozen=True)
class RunEvaluation:
    """A score with its interval and signature, and the sentences behind it."""

    method: str
    split: str
    score_name: str
    score: float
    interval: tuple[float, float]
    signature: str
    sources: list[str]
    references: list[str]
    predictions: list[str]
    statistics: Array  # [sentences, K], each sentence's summands of the score

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, without the sentences."""
        names = ("method", "split", "score_name", "score", "interval", "signature")
        return {name: getattr(self, name) for name in names} | {"sentences": len(self.sources)}


def evaluate(place: str | Path, split: str = "test", overrides: Sequence[str] = ()) -> RunEvaluation:
    """Judge the best actor of a run or model on a split of its data, or of the data that overrides name."""
    model = load_model(place)
    tree = model.settings.model_dump(mode="json")
    set_leaves(tree, overrides, section="data")
    settings = settings_from(tree)
    torch.set_num_threads(settings.threads)
    data = SpellingData(settings.data)
    evaluation_set = data.evaluation_set(split)
    metric = corpus_metric(settings.score)
    judgement = judge(model.actor, data, evaluation_set, metric)
    return RunEvaluation(
        method=settings.method.label,
        split=split,
        score_name=metric.name,
        score=judgement.score,
        interval=interval([judgement.statistics], metric),
        signature=signature(settings, split, len(evaluation_set.references)),
        sources=evaluation_set.sources,
        references=evaluation_set.references,
        predictions=judgement.predictions,
        statistics=judgement.statistics,
    )
