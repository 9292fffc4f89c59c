"""The parts that a run is made of, and the factory that makes them of a recipe."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.score import Score
from seqcritic.contracts.task import Task
from seqcritic.data.task import build_task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score
from seqcritic.models.build import build_codec
from seqcritic.progress import log
from seqcritic.settings.data import OwnTaskSettings, SpellingSettings
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import CheckpointFolder, read_description
from seqcritic.training.distributed import Processes
from seqcritic.training.learner import recipe_networks
from seqcritic.training.model import CHECKPOINTS_FOLDER, stored_codec
from seqcritic.training.start import start_codec


@dataclass(frozen=True)
class Parts:
    """What a run is composed of: actor, task, score, and the critic if the method needs one."""

    actor: Actor
    task: Task
    score: Score
    critic: Critic | None = None


def recipe_task(settings: Settings, level: int = logging.DEBUG, trained: Codec | None = None) -> Task:
    """Return the task of a recipe; where the actor brings its own tokens, texts are read in those.

    A pretrained model and start.actor do. `trained` is the codec of the run itself if it is being resumed, because
    what it began from may be gone.
    """
    codec = build_codec(settings)
    if codec is not None and isinstance(settings.data, SpellingSettings):
        raise UserError("actor.pretrained: a pretrained model reads pairs of texts; give data.task=translation")
    if codec is None and settings.start.actor is not None:
        codec = start_codec(settings) if trained is None else trained
        if codec is not None:
            log.log(level, f"data: the vocabularies are those of start.actor, {settings.start.actor}")
    return build_task(settings.data, codec, level)


def recipe_parts(settings: Settings, folder: Path, processes: Processes) -> Parts:
    """Return the parts that the settings of a recipe describe; of several processes the first reads the text first.

    `folder` is the run's own, which may have been trained in before.
    """
    latest = CheckpointFolder(folder / CHECKPOINTS_FOLDER).latest()
    trained = None if latest is None else stored_codec(read_description(latest), latest)
    if not isinstance(settings.data, OwnTaskSettings):
        build_score(settings)  # a fault of the score is told before the text is read
    with processes.one_before_the_rest():
        task = recipe_task(settings, logging.INFO, trained)
        # Reads and encodes the text, so that the other processes find it in the caches.
        task.fingerprint()
    # Of these the actor and the critic: `Run` makes the copies, as it does for parts from Python.
    networks = recipe_networks(settings, task.codec.num_source_tokens, task.codec.num_target_tokens)
    return Parts(networks.actor, task, build_score(settings, task.codec), networks.critic)
