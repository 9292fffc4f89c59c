"""Scores made ready before anything is trained for them: a user's own is tried, texts are stored."""

from __future__ import annotations

from seqcritic.contracts.score import Score
from seqcritic.contracts.task import Task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score, is_function, load_user_score
from seqcritic.scores.shared.function import FunctionScore, try_on
from seqcritic.settings.tree import Settings
from seqcritic.training.parts import recipe_task

NUM_CHECKED = 3  # examples on which a user's function is tried


def check_score(settings: Settings, task: Task) -> None:
    """Make the score of settings ready."""
    prepare_score(build_score(settings), task, settings.seed)


def prepare_score(score: Score, task: Task, seed: int) -> None:
    """Try a user's own score before the first update, and have the raw texts ready that any score will be given."""
    if isinstance(score, FunctionScore):
        _try_function(score, task)
    texts = task.training_batch(0, 1, seed).texts
    assert texts is not None
    # Further references have no ids of their own, so that their texts are read for scores of tokens too.
    if score.unit == "text" or texts.encode is not None:
        texts.references()


def check_described_score(settings: Settings) -> None:
    """Load a user's own score and, where the validation text is there, try it."""
    if not is_function(settings):
        return
    score = load_user_score(settings)
    task = recipe_task(settings)
    try:
        task.first_examples(1)
    except UserError:
        return  # the recipe is looked at, not run: the text may be on another machine
    _try_function(score, task)


def _try_function(score: FunctionScore, task: Task) -> None:
    try:
        try_on(score, task.first_examples(NUM_CHECKED))
    except UserError as error:
        raise UserError(f"score.name: {error}") from error
