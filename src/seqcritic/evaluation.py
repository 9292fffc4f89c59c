"""Judging an actor: its predictions, the corpus score and its signature."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version

from seqcritic.config import Settings
from seqcritic.data.batch import Batch, EvaluationSet
from seqcritic.data.task import Task
from seqcritic.data_settings import TranslationSettings
from seqcritic.decoding.search import GREEDY, Search, find_best
from seqcritic.errors import UserError
from seqcritic.models.actor import Actor
from seqcritic.scores.corpus_bleu import CorpusBleu
from seqcritic.scores.edit_distance import CharacterErrorRate
from seqcritic.scores.function import TextFunction, load_function
from seqcritic.scores.mean import MeanScore, mean_rouge_l
from seqcritic.scores.score import Array, CorpusScore


@dataclass(frozen=True)
class Judgement:
    """Predictions of an evaluation set, each sentence's summands of the score, and the corpus score."""

    predictions: list[str]
    statistics: Array  # [sentences, K]
    score: float


def corpus_metric(settings: Settings) -> CorpusScore:
    """Return the score that tables report for the score trained for.

    A model without case is judged without it, and text that comes tokenised as it is: a second tokeniser would make
    three tokens that match of every `&apos;`.
    """
    score, data = settings.score, settings.data
    tokens = data.target_tokens if isinstance(data, TranslationSettings) else None
    tokenised, lowercase = (tokens.kind == "whitespace", tokens.lowercase) if tokens else (False, False)
    if score.name == "edit-distance":
        return CharacterErrorRate(score.capped, lowercase)
    if score.name == "bleu":
        return CorpusBleu(tokenised, lowercase)
    if score.name == "rouge-l":
        return mean_rouge_l(tokenised, lowercase)
    return MeanScore(score.name, load_user_function(score.name), [], lowercase)


def load_user_function(name: str) -> TextFunction:
    """Return the function `module:function` names; modules beside the recipe, in the current folder, are found."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return load_function(name)
    except UserError as error:
        raise UserError(f"score.name: {error}") from error


def judge(
    actor: Actor,
    task: Task,
    evaluation_set: EvaluationSet,
    metric: CorpusScore,
    search: Search = GREEDY,
    between_batches: Callable[[], None] = lambda: None,
) -> Judgement:
    """Predict by a search and score; `between_batches` may raise to break off."""
    predictions: list[str] = []
    for batch in evaluation_set.batches:
        predictions += predict_batches(actor, task, [batch], search)
        between_batches()
    return score_predictions(predictions, evaluation_set.references, metric)


def predict_batches(actor: Actor, task: Task, batches: Iterable[Batch], search: Search) -> list[str]:
    """Return the predictions of a search as text."""
    return [
        prediction
        for batch in batches
        for prediction in task.texts(find_best(actor, batch.sources, batch.source_mask, search))
    ]


def score_predictions(predictions: list[str], references: list[str], metric: CorpusScore) -> Judgement:
    """Return predictions with their score."""
    statistics = metric.statistics(predictions, references)
    return Judgement(predictions, statistics, float(metric.of_totals(statistics.sum(axis=0))))


def signature(task: Task, metric: CorpusScore, split: str, num_sentences: int, search: Search = GREEDY) -> str:
    """Return what a reader needs to know to obtain the same figure."""
    name, *computation = metric.signature()
    place = [f"split:{split}", f"sentences:{num_sentences}"]
    versions = [f"seqcritic:{version('seqcritic')}"]
    return "|".join([name, *place, *task.conditions(split), search.signature(), *computation, *versions])
