"""The score a run trains for, by its settings."""

from __future__ import annotations

from collections.abc import Sequence

from seqcritic.config import ScoreSettings, Settings
from seqcritic.data.task import Task, build_task
from seqcritic.data.words import UNKNOWN_REFERENCE_WORD, UNKNOWN_WORD
from seqcritic.errors import UserError
from seqcritic.evaluation import load_user_function, try_user_function
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.function import FunctionScore
from seqcritic.scores.rouge import RougeLScore
from seqcritic.scores.score import Score


def is_function(settings: ScoreSettings) -> bool:
    """Return whether the score is a user's own, `module:function`."""
    return ":" in settings.name


def try_score(settings: Settings, task: Task) -> None:
    """Try a user's own score before the first update, and have the raw references ready that it will be given."""
    if is_function(settings.score):
        try_user_function(settings.score.name, task)
        task.training_batch(0, 1, settings.seed).reference_texts()


def try_described_score(settings: Settings) -> None:
    """Load a user's own score and, where the validation text is there, try it."""
    if not is_function(settings.score):
        return
    load_user_function(settings.score.name)
    task = build_task(settings.data)
    try:
        task.first_references(1)
    except UserError:
        return  # the recipe is looked at, not run: the text may be on another machine
    try_user_function(settings.score.name, task)


def build_score(settings: ScoreSettings, task: Task) -> Score:
    """Return the score whose increases are the rewards."""
    if settings.name == "edit-distance":
        return EditDistanceScore(settings.normalise, task.unknown)
    if settings.name == "bleu":
        return BleuScore(task.unknown)
    if settings.name == "rouge-l":
        return RougeLScore(task.unknown)

    def decode_part(numbers: Sequence[int]) -> str:
        return task.decode(numbers).replace(UNKNOWN_WORD, UNKNOWN_REFERENCE_WORD)

    return FunctionScore(load_user_function(settings.name), task.decode, decode_part, task.lowercase)
