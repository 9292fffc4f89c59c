"""The tasks by their settings."""

from __future__ import annotations

import logging
from typing import Any

from seqcritic.contracts.codec import Codec, codec_from_dict
from seqcritic.contracts.parts import part_class
from seqcritic.contracts.registry import TASKS
from seqcritic.contracts.task import Task
from seqcritic.data.pairs import PairsFromFiles
from seqcritic.data.spelling import SpellingTask
from seqcritic.settings.data import OwnTaskSettings, SpellingSettings, TranslationSettings


def build_task(
    settings: SpellingSettings | TranslationSettings | OwnTaskSettings,
    codec: Codec | dict[str, Any] | None = None,
    level: int = logging.DEBUG,
) -> Task:
    """Return the task of the settings; `codec` is the one of a model, or what is stored of it, where there is one.

    What is read is logged with `level`: to train on it is worth a line, to read it again is not.
    """
    if isinstance(settings, OwnTaskSettings):
        return part_class(TASKS, settings.task)(**settings.arguments)
    if isinstance(settings, SpellingSettings):
        return SpellingTask(settings, level)  # its alphabet is fixed, its windows are of the settings' length
    known = codec_from_dict(codec) if isinstance(codec, dict) else codec
    return PairsFromFiles(settings, codec=known, level=level)
