"""The score a run trains for, by its settings."""

from __future__ import annotations

from seqcritic.config import ScoreSettings
from seqcritic.data.task import Task
from seqcritic.evaluation import load_user_function
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.function import FunctionScore
from seqcritic.scores.rouge import RougeLScore
from seqcritic.scores.score import Score


def build_score(settings: ScoreSettings, task: Task) -> Score:
    """Return the score whose increases are the rewards."""
    if settings.name == "edit-distance":
        return EditDistanceScore(settings.normalise)
    if settings.name == "bleu":
        return BleuScore(task.unknown)
    if settings.name == "rouge-l":
        return RougeLScore(task.unknown)
    return FunctionScore(load_user_function(settings.name), task.decode)
