"""Evaluating an actor: its predictions, the corpus score and its signature."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version

from pydantic import ValidationError

from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.batch import Batch, EvaluationSet
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.registry import SCORES
from seqcritic.contracts.score import Array, Score, ScoreOptions
from seqcritic.contracts.task import Task
from seqcritic.data.codecs.spelling import SpellingCodec
from seqcritic.data.codecs.text import options_of_tokens
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
from seqcritic.decoding.search import GREEDY, AnySearch, find_best
from seqcritic.errors import UserError
from seqcritic.scores.shared.function import as_score, load_score
from seqcritic.scores.weighted_sum import Weighted, WeightedSum
from seqcritic.settings.data import OBJECT, OwnTaskSettings, TranslationSettings
from seqcritic.settings.scores import WEIGHTED_SUM, ScoreSettings
from seqcritic.settings.tree import Precision, Settings

SURROGATE = "trained:"
USUAL_LIMITS = LengthLimits()


@dataclass(frozen=True)
class Evaluated:
    """Predictions of an evaluation set, each sentence's summands of the score, and the corpus score."""

    predictions: list[str]
    statistics: Array  # [sentences, K]
    score: float


def build_score(settings: Settings, codec: Codec | None = None) -> Score:
    """Return the score that `settings` name, which is trained for and reported.

    A model without case is evaluated without it, and text that comes tokenised as it is: a second tokeniser would make
    three tokens that match of every `&apos;`.
    """
    if settings.score.name == OBJECT:
        raise UserError(
            "the score of this run was passed from Python as an object that its folder cannot describe; pass it again "
            "from Python, as score=…"
        )
    scores = [build_named(name, settings, codec, path) for path, name in settings.score.names.items()]
    if not settings.score.parts:
        return scores[0]
    # The parts are built already, each by the path under which a fault of it is told.
    parts = tuple((score, part.weight) for score, part in zip(scores, settings.score.parts, strict=True))
    return SCORES.find(WEIGHTED_SUM).build(replace(score_options(settings, codec), parts=parts))


def build_named(name: str, settings: Settings, codec: Codec | None = None, path: str = "score.name") -> Score:
    """Return the score of a name, which stands in the settings at a dotted path, or of `module:function`."""
    options = score_options(settings, codec)
    if ":" not in name:
        return SCORES.find(name).build(options)
    # Modules beside the recipe, in the current folder, are found.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return load_score(name, options.lowercase)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def build_weighted(given: Weighted, settings: Settings, codec: Codec | None = None) -> WeightedSum:
    """Return the sum of scores, names of scores and functions that was passed from Python."""
    return given.build(lambda part: build_named(part, settings, codec) if isinstance(part, str) else as_score(part))


def other_scores(score: Score, settings: Settings, codec: Codec | None = None) -> dict[str, Score]:
    """Return the scores that are reported beside the one trained for: the parts of a sum, and `evaluation.also`.

    They go by their names in tables, or by those of the settings where two would be one.
    """
    found: dict[str, Score] = {}
    others = [(each.name, each) for each in score.members() if each is not score]
    others += [
        (name, build_named(name, settings, codec, f"evaluation.also.{place}"))
        for place, name in enumerate(settings.evaluation.also)
    ]
    # Two scores of one name, as BLEU of two kinds, would overwrite each other in a record of metrics.
    for name, other in others:
        label = other.name if other.name not in (score.name, *found) else name
        found.setdefault(label, other)
    return found


def introduce(score: Score, task: Callable[[], Task]) -> Score:
    """Tell a score how to read the validation references of a task, and return it; the task is made when it reads."""

    def read() -> list[list[list[int]]]:
        valid = task()
        return [valid.codec.encode_references(list(own)) for own in valid.evaluation_set("valid").all_references]

    # A function, not the text: most scores never read it, and reading costs a pass over the validation set.
    score.read_corpus(read)
    return score


def score_options(settings: Settings, codec: Codec | None = None) -> ScoreOptions:
    """Return the options that scores are built with: from the codec if it is at hand, else from the settings."""
    score, data = settings.score, settings.data
    # The codec of a model knows best; settings stand in where nothing has been read yet, as for a check of names.
    if codec is not None:
        chosen = codec.score_options()
    elif isinstance(data, OwnTaskSettings):
        chosen = ScoreOptions()
    elif isinstance(data, TranslationSettings):
        chosen = options_of_tokens(data.target_tokens.kind, data.target_tokens.lowercase)
    else:
        chosen = SpellingCodec(data.length).score_options()
    return replace(chosen, normalise=score.normalise, capped=score.capped)


def resolve_search(search: AnySearch, settings: Settings, codec: Codec, own: Callable[[], Score]) -> AnySearch:
    """Return a search as a model makes it: samples are compared by its own score, if by no other."""
    if not isinstance(search, MinimumBayesRisk) or isinstance(search.utility, Score):
        return search
    if search.utility is None:
        utility = own()
    else:
        try:
            score = ScoreSettings.model_validate({**settings.score.model_dump(), "name": search.utility, "parts": ()})
        except ValidationError as error:
            # The settings speak of score.name; whoever reads this has given a utility.
            told = str(error.errors()[0]["ctx"]["error"])
            raise UserError(told.replace("score.name:", "utility:")) from None
        try:
            utility = build_score(settings.model_copy(update={"score": score}), codec)
        except UserError as error:
            raise UserError(str(error).replace("score.name:", "utility:")) from error
    return replace(search, utility=utility)


def surrogate(score: Score) -> str:
    """Return `trained:NAME:UNIT` if rewards come from a surrogate of the reported score, else an empty string."""
    return f"{SURROGATE}{score.surrogate}" if score.surrogate else ""


def without_surrogate(signature: str) -> str:
    """Return a signature without what was trained for: models trained otherwise may stand in one table."""
    return "|".join(part for part in signature.split("|") if not part.startswith(SURROGATE))


def evaluate_actor(
    actor: Actor,
    task: Task,
    evaluation_set: EvaluationSet,
    metric: Score,
    search: AnySearch = GREEDY,
    between_batches: Callable[[], None] = lambda: None,
) -> Evaluated:
    """Predict by a search and score; `between_batches` may raise to break off."""
    predictions: list[str] = []
    for batch in evaluation_set.batches:
        predictions += predict_batches(actor, task, [batch], search)
        between_batches()
    return score_predictions(predictions, evaluation_set, metric)


def predict_batches(actor: Actor, task: Task, batches: Iterable[Batch], search: AnySearch) -> list[str]:
    """Return the predictions of a search as text."""
    predictions: list[str] = []
    for batch in batches:
        read_sources = None if batch.texts is None else batch.texts.sources
        found = find_best(actor, batch.sources, batch.source_mask, search, task.codec.decode, read_sources)
        predictions += task.codec.texts(found)
    return predictions


def score_predictions(predictions: list[str], evaluation_set: EvaluationSet, metric: Score) -> Evaluated:
    """Return predictions of a set with their score."""
    statistics = metric.statistics(predictions, evaluation_set.all_references, evaluation_set.sources)  # [N, K]
    # Of a corpus the score is a function of the sum over sentences, so that a bootstrap needs no text.
    return Evaluated(predictions, statistics, float(metric.of_totals(statistics.sum(axis=0))))


def name_references(parts: list[str], num_references: str) -> list[str]:
    """Return the parts of a signature with the number of references; one is named only by scores that name it."""
    told = f"nrefs:{num_references}"
    if any(part.startswith("nrefs:") for part in parts):
        return [told if part.startswith("nrefs:") else part for part in parts]
    return parts if num_references == "1" else [*parts, told]


def signature(
    task: Task,
    metric: Score,
    split: str,
    num_sentences: int,
    search: AnySearch = GREEDY,
    trained: str = "",
    num_references: str = "1",
    num_members: int = 1,
    limits: LengthLimits = USUAL_LIMITS,
    precision: Precision = "float32",
) -> str:
    """Return what a reader needs to know to obtain the same figure, and the surrogate that was trained for."""
    # The order of the parts is that of published signatures: a signature is compared as a string.
    name, *computation = name_references(metric.signature(), num_references)
    computation += [trained] if trained else []
    place = [f"split:{split}", f"sentences:{num_sentences}"]
    versions = [f"seqcritic:{version('seqcritic')}"]
    found_by = [search.signature()] + ([f"ensemble:{num_members}"] if num_members > 1 else [])
    found_by += limits.signature()
    # float64 predicts what float32 does but for ties; bfloat16 may find something else in one line of hundreds.
    found_by += [f"precision:{precision}"] if precision == "bfloat16" and search != GREEDY else []
    return "|".join([name, *place, *task.conditions(split), *found_by, *computation, *versions])
