"""The parts that a run is made of, and the factory that makes them of a recipe."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.score import Score
from seqcritic.contracts.task import Task
from seqcritic.data.task import build_task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score
from seqcritic.models.build import build_codec
from seqcritic.settings.data import OwnTaskSettings, SpellingSettings
from seqcritic.settings.tree import Settings
from seqcritic.training.distributed import Processes
from seqcritic.training.learner import recipe_networks


@dataclass(frozen=True)
class Parts:
    """What a run is composed of: actor, task, score, and the critic if the method needs one."""

    actor: Actor
    task: Task
    score: Score
    critic: Critic | None = None


def recipe_task(settings: Settings, level: int = logging.DEBUG) -> Task:
    """Return the task of a recipe, with the actor's own codec if it has one (pretrained models do)."""
    codec = build_codec(settings)
    if codec is not None and isinstance(settings.data, SpellingSettings):
        raise UserError("actor.pretrained: a pretrained model reads pairs of texts; give data.task=translation")
    return build_task(settings.data, codec, level)


def recipe_parts(settings: Settings, processes: Processes) -> Parts:
    """Return the parts that the settings of a recipe describe; of several processes the first reads the text first."""
    if not isinstance(settings.data, OwnTaskSettings):
        build_score(settings)  # a fault of the score is told before the text is read
    with processes.one_before_the_rest():
        task = recipe_task(settings, logging.INFO)
        task.fingerprint()
    networks = recipe_networks(settings, task.codec.num_source_tokens, task.codec.num_target_tokens)
    return Parts(networks.actor, task, build_score(settings, task.codec), networks.critic)
