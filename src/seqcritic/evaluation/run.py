"""Evaluating a trained run on a split, with what a table and a report need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seqcritic.contracts.batch import EvaluationSet
from seqcritic.contracts.score import Array, Score
from seqcritic.contracts.task import Task
from seqcritic.data.codecs.text import TextCodec
from seqcritic.data.task import build_task
from seqcritic.decoding.search import GREEDY, AnySearch
from seqcritic.errors import UserError
from seqcritic.evaluation.bootstrap import interval
from seqcritic.evaluation.evaluate import (
    name_references,
    other_scores,
    predict_batches,
    score_predictions,
    signature,
    surrogate,
)
from seqcritic.progress import Bar, set_up_logging
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.chrf import ChrfScore
from seqcritic.scores.shared.function import FunctionScore
from seqcritic.settings.io import Overrides, flatten, override, settings_from
from seqcritic.settings.tree import DeviceName
from seqcritic.training.environment import set_up_process
from seqcritic.training.model import Model, Places, open_model

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class RunEvaluation:
    """A score with its interval and signature, and the sentences behind it."""

    method: str
    split: str
    score_name: str
    score: float
    interval: tuple[float, float]
    signature: str
    further: dict[str, tuple[float, str]]  # other scores by name, each with its signature
    sources: list[str]
    references: list[str]
    predictions: list[str]
    statistics: Array  # [sentences, K], each sentence's summands of the score
    further_references: list[tuple[str, ...]] | None = None  # beyond the first, where any sentence has such
    decimals: dict[str, int] = field(default_factory=dict)  # of scores by name, where they are not the two of percents
    own_scores: tuple[str, ...] = ()  # of each sentence, as it is printed, where the score is a user's own

    def write(self, name: str, value: float) -> str:
        """Return a score of this name with as many decimals as tell something."""
        return f"{value:.{self.decimals.get(name, 2)}f}"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, without the sentences."""
        names = ("method", "split", "score_name", "score", "interval", "signature", "further")
        return {name: getattr(self, name) for name in names} | {"sentences": len(self.sources)}


def evaluate(
    place: Places | Model,
    split: str = "test",
    overrides: Overrides = (),
    search: AnySearch = GREEDY,
    device: DeviceName = "auto",
) -> RunEvaluation:
    """Evaluate the best actor of a run or model on a split of its data, or of the data that overrides name.

    Overrides are `data.key=value`s, or a dictionary such as {"data.test.pairs": ["new.tsv"]}.
    """
    set_up_logging()
    if split not in SPLITS:
        raise UserError(f"split: no split '{split}'; there are {', '.join(SPLITS)}")
    model, task = load_for_evaluation(place, overrides, device)
    search = model.resolve(search)
    evaluation_set = task.evaluation_set(split)
    with Bar(f"{search.describe()} on {split}", len(evaluation_set), "sentences") as bar, model.predicting(search):
        predictions = predict_batches(model.actor, task, bar.over(evaluation_set.batches, len), search)
    return evaluate_predictions(model, task, split, evaluation_set, search, predictions)


def evaluate_predictions(
    model: Model, task: Task, split: str, evaluation_set: EvaluationSet, search: AnySearch, predictions: list[str]
) -> RunEvaluation:
    """Return all figures of a model's predictions by a search."""
    metric = model.score
    evaluated = score_predictions(predictions, evaluation_set, metric)
    further = _further_scores(model, task, predictions, evaluation_set)
    watched = other_scores(metric, model.settings, task.codec)
    decimals = {name: score.num_decimals(further[name][0]) for name, score in watched.items()}
    # [N]: each sentence as a corpus of its own, which a mean over sentences allows.
    own = metric.of_totals(evaluated.statistics).tolist() if isinstance(metric, FunctionScore) else ()
    return RunEvaluation(
        method=model.settings.method.label,
        split=split,
        score_name=metric.name,
        score=evaluated.score,
        interval=interval([evaluated.statistics], metric),
        signature=signature(
            task,
            metric,
            split,
            len(evaluation_set.references),
            search,
            surrogate(metric),
            evaluation_set.num_references,
            model.description.get("members", 1),
            model.actor.limits,
            model.settings.precision,
        ),
        further=further,
        sources=evaluation_set.sources,
        references=evaluation_set.references,
        predictions=predictions,
        statistics=evaluated.statistics,
        further_references=evaluation_set.further_references,
        decimals={metric.name: metric.num_decimals(evaluated.score)} | decimals,
        own_scores=tuple(map(metric.write, own)),
    )


def load_for_evaluation(
    place: Places | Model, overrides: Overrides = (), device: DeviceName = "auto"
) -> tuple[Model, Task]:
    """Return a model and the task it is evaluated on, with its own codec."""
    model = open_model(place, device)
    set_up_process(model.settings.threads)
    if not overrides:
        return model, model.task
    tree = model.settings.model_dump(mode="json")
    # Before the overrides are applied: afterwards nobody knows whose files are whose.
    _make_room(tree["data"], overrides)
    override(tree, overrides, section="data")
    # Other text in the model's own tokens: learnt anew, ids would mean something else.
    return model, build_task(settings_from(tree).data, codec=model.codec)


def _make_room(data: dict[str, Any], overrides: Overrides) -> None:
    """Take the run's own files out of a split for which pairs are given in the other form.

    Otherwise both would be evaluated.
    """
    tree: dict[str, Any] = {}
    override(tree, overrides, section="data")  # however they are nested
    given = flatten(tree)
    for split in SPLITS:
        fields = {field for field in ("source", "target", "pairs") if f"data.{split}.{field}" in given}
        if fields == {"pairs"}:
            data[split] |= {"source": [], "target": []}
        elif fields and "pairs" not in fields:
            data[split] |= {"pairs": []}


def _further_scores(
    model: Model, task: Task, predictions: list[str], evaluation_set: EvaluationSet
) -> dict[str, tuple[float, str]]:
    """Return the other figures: the scores that the settings watch; beside BLEU of texts, chrF and the paper's BLEU."""
    references, codec = evaluation_set.all_references, task.codec
    scores = other_scores(model.score, model.settings, codec)

    def describe(score: Score) -> str:
        return "|".join(name_references(score.signature(), evaluation_set.num_references)).removeprefix("score:")

    found = {
        name: (score_predictions(predictions, evaluation_set, score).score, describe(score))
        for name, score in scores.items()
    }
    if model.settings.score.name != "bleu" or not isinstance(codec, TextCodec):
        return found
    paper, chrf = BleuScore(tokenised=True), ChrfScore(lowercase=codec.lowercase)

    def tokenise(lines: Sequence[str]) -> list[str]:
        return [line.lower() for line in codec.tokenised_lines(lines)]

    totals = paper.statistics(tokenise(predictions), [tokenise(own) for own in references]).sum(axis=0)
    chrf_totals = chrf.statistics(predictions, references).sum(axis=0)
    expected = {
        "BLEU, tokenised lower-case as in the paper": (float(paper.of_totals(totals)), f"score:{describe(paper)}"),
        "chrF": (float(chrf.of_totals(chrf_totals)), describe(chrf)),
    }
    # What the settings ask for comes last, so that it stands where both have one name.
    return expected | found
