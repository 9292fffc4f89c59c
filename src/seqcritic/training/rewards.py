"""Scores made ready before anything is trained for them: a user's own is tried, texts are stored."""

from __future__ import annotations

from seqcritic.contracts.score import Score
from seqcritic.contracts.task import Task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_named, build_score, introduce
from seqcritic.scores.shared.function import FunctionScore, try_on
from seqcritic.settings.tree import Settings
from seqcritic.training.parts import recipe_task

NUM_CHECKED = 3  # examples on which a user's function is tried


def check_score(settings: Settings, task: Task) -> None:
    """Make the score of settings ready."""
    prepare_score(build_score(settings, task.codec), task, settings.seed)


def prepare_score(score: Score, task: Task, seed: int) -> None:
    """Try a user's own score before the first update, and have the raw texts ready that any score will be given."""
    introduce(score, lambda: task)
    for place, member in enumerate(score.members()):
        try_function(member, task, "score.name" if member is score else f"score.parts.{place}.name")
    texts = task.training_batch(0, 1, seed).texts
    assert texts is not None
    # Further references have no ids of their own, so that their texts are read for scores of tokens too.
    if any(member.unit == "text" for member in score.members()) or texts.encode is not None:
        texts.references()  # stores the raw texts, which the first update would else wait for


def check_described_score(settings: Settings) -> None:
    """Load the user's own scores and, where the validation text is there, try them."""
    found = {path: build_named(name, settings, None, path) for path, name in settings.user_scores.items()}
    if not found:
        return
    task = recipe_task(settings)
    try:
        task.first_examples(1)
    except UserError:
        return  # the recipe is looked at, not run: the text may be on another machine
    for path, score in found.items():
        try_function(score, task, path)


def try_function(score: Score, task: Task, path: str) -> None:
    """Try a score that is a user's function on a few examples; a fault names where the settings name it."""
    if not isinstance(score, FunctionScore):
        return
    if score.reads_sources and task.codec.num_source_tokens == 0:
        raise UserError(f"{path}: the function reads sources, and these are no texts; let it do without them")
    try:
        try_on(score, task.first_examples(NUM_CHECKED), trained_for=path == "score.name")
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
