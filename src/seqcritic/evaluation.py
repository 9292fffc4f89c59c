"""Judging an actor: its predictions, the corpus score and its signature."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version

from seqcritic.config import Settings
from seqcritic.contracts.actor import Actor
from seqcritic.data.batch import Batch, EvaluationSet
from seqcritic.data.task import Task
from seqcritic.data.words import RULES_VERSION, UNKNOWN_WORD, split_words
from seqcritic.data_settings import TranslationSettings
from seqcritic.decoding.search import GREEDY, Search, find_best
from seqcritic.errors import UserError
from seqcritic.scores.corpus_bleu import CorpusBleu
from seqcritic.scores.edit_distance import CharacterErrorRate, WordErrorRate
from seqcritic.scores.function import TextFunction, digest_code, load_function, try_on
from seqcritic.scores.mean import MeanScore, mean_rouge_l
from seqcritic.scores.score import Array, CorpusScore

NUM_TRIED = 3  # references on which a user's function is tried
SURROGATE = "trained:"


@dataclass(frozen=True)
class Judgement:
    """Predictions of an evaluation set, each sentence's summands of the score, and the corpus score."""

    predictions: list[str]
    statistics: Array  # [sentences, K]
    score: float


def corpus_metric(settings: Settings) -> CorpusScore:
    """Return the score that tables report for the score trained for, in the unit it is trained in.

    Edit distances of subwords are the exception: a rate of errors in them could not be compared with another model's,
    so that characters are counted (see `surrogate`). A model without case is judged without it, and text that comes
    tokenised as it is: a second tokeniser would make three tokens that match of every `&apos;`.
    """
    score, data = settings.score, settings.data
    unit, lowercase = token_unit(settings), isinstance(data, TranslationSettings) and data.target_tokens.lowercase
    if score.name == "edit-distance" and unit == "words":
        return WordErrorRate(split_words, f"words.{RULES_VERSION}", score.capped, lowercase)
    if score.name == "edit-distance" and unit == "whitespace":
        return WordErrorRate(str.split, "whitespace", score.capped, lowercase)
    if score.name == "edit-distance":
        return CharacterErrorRate(score.capped, lowercase)
    if score.name == "bleu":
        return CorpusBleu(unit == "whitespace", lowercase)
    if score.name == "rouge-l":
        return mean_rouge_l(UNKNOWN_WORD, unit == "whitespace", lowercase)
    function = load_user_function(score.name)
    return MeanScore(score.name, function, [f"code:{digest_code(score.name)}"], lowercase)


def token_unit(settings: Settings) -> str:
    """Return what an actor writes: characters, words, whitespace (tokens as they come) or subwords."""
    data = settings.data
    return data.target_tokens.kind if isinstance(data, TranslationSettings) else "characters"


def surrogate(settings: Settings) -> str:
    """Return `trained:NAME:UNIT` of the score that rewards are made of where it is not the one reported; else nothing.

    Σ (|Y| − d) over sentences is largest where the corpus' error rate is least: nothing to name. BLEU of a corpus is no
    sum over sentences, and the others weigh sentences by a length or count other tokens than their corpus score does.
    """
    score, unit = settings.score, token_unit(settings)
    if score.name == "edit-distance":
        if unit != "subwords" and not score.normalise and not score.capped:
            return ""
        return f"{SURROGATE}edit-distance{'/length' if score.normalise else ''}:{unit}"
    return {"bleu": f"{SURROGATE}sentence-bleu+1:{unit}", "rouge-l": f"{SURROGATE}length*rouge-l:{unit}"}.get(
        score.name, ""
    )


def without_surrogate(signature: str) -> str:
    """Return a signature without what was trained for: models trained otherwise may stand in one table."""
    return "|".join(part for part in signature.split("|") if not part.startswith(SURROGATE))


def try_user_function(name: str, task: Task) -> None:
    """Call the function `score.name` names on a few references, before anything is trained for it."""
    function, references = load_user_function(name), task.first_references(NUM_TRIED)
    try:
        try_on(function, references)
    except UserError as error:
        raise UserError(f"score.name: {error}") from error


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


def signature(
    task: Task, metric: CorpusScore, split: str, num_sentences: int, search: Search = GREEDY, trained: str = ""
) -> str:
    """Return what a reader needs to know to obtain the same figure, and the surrogate that was trained for."""
    name, *computation = metric.signature()
    computation += [trained] if trained else []
    place = [f"split:{split}", f"sentences:{num_sentences}"]
    versions = [f"seqcritic:{version('seqcritic')}"]
    return "|".join([name, *place, *task.conditions(split), search.signature(), *computation, *versions])
