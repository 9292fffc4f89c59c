"""Trained models on disk: a folder with the actor, the critic where there is one, and a description.

A run exports one when it finishes; the package ships some (`pretrained:NAME`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqcritic.config import Settings
from seqcritic.data.batch import pad
from seqcritic.data.spelling import SpellingData
from seqcritic.decoding.sampling import greedy
from seqcritic.errors import UserError
from seqcritic.models.actor import Actor
from seqcritic.settings_io import settings_from
from seqcritic.training.checkpoint import CheckpointFolder, load_weights, read_description, read_tensors

PRETRAINED = "pretrained:"
MODEL_FOLDER = "model"
CHECKPOINTS_FOLDER = "checkpoints"
PREDICTION_BATCH = 256


@dataclass(frozen=True)
class Model:
    """A trained actor with what it needs to read and write text."""

    actor: Actor
    data: SpellingData
    settings: Settings
    description: dict[str, Any]

    def predict(self, lines: Sequence[str]) -> list[str]:
        """Return the correction of each raw line; lines longer than the model's windows are corrected in pieces."""
        pieces = [self.data.pieces(line) for line in lines]
        flat = [piece for line in pieces for piece in line]
        corrected: list[str] = []
        for first in range(0, len(flat), PREDICTION_BATCH):
            chunk = flat[first : first + PREDICTION_BATCH]
            sources, mask = pad([self.data.vocabulary.encode(piece) for piece in chunk])
            corrected += self.data.texts(greedy(self.actor, sources, mask))
        remaining = iter(corrected)
        return ["".join(next(remaining) for _ in line) for line in pieces]


def find_weights(place: str | Path) -> Path:
    """Return the folder that holds the weights of a model folder, a run, or `pretrained:NAME`."""
    text = str(place)
    if text.startswith(PRETRAINED):
        folder = Path(str(files("seqcritic").joinpath("pretrained", text.removeprefix(PRETRAINED))))
        if not folder.is_dir():
            raise UserError(f"no pretrained model '{text}' in this installation of seqcritic")
        return folder
    path = Path(place)
    if not path.exists():
        raise UserError(f"no such run or model: {path}")
    if (path / MODEL_FOLDER).is_dir():
        return path / MODEL_FOLDER
    if (path / CHECKPOINTS_FOLDER).is_dir():
        latest = CheckpointFolder(path / CHECKPOINTS_FOLDER).latest()
        if latest is None:
            raise UserError(f"{path}: the run has no checkpoint yet; let it train for a while")
        return latest
    return path


def read_network(place: str | Path, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights of the actor (the best so far) or the critic of a run or model, and its description."""
    folder = find_weights(place)
    description = read_description(folder)
    if name not in description["digests"]:
        raise UserError(f"{folder} holds no {name}")
    return read_tensors(folder, name, description), description


def load_model(place: str | Path) -> Model:
    """Return the best actor of a run, finished or not, of a model folder, or of `pretrained:NAME`."""
    weights, description = read_network(place, "actor")
    settings = settings_from(description["settings"])
    data = SpellingData(settings.data)
    size = len(data.vocabulary)
    actor = Actor(settings.actor, size, size, torch.Generator())
    load_weights(actor, weights, str(place))
    return Model(actor.eval(), data, settings, description)
