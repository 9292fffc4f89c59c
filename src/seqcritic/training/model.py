"""Trained models on disk: a folder with the actor, the critic where there is one, and a description.

A run exports one when it finishes; some come with the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from seqcritic.config import DeviceName, Settings
from seqcritic.contracts.actor import Actor
from seqcritic.data.task import Task, build_task
from seqcritic.decoding.search import GREEDY, AnySearch, Search, find_best, find_several
from seqcritic.errors import UserError
from seqcritic.evaluation import resolve_search
from seqcritic.models.build import build_actor
from seqcritic.models.ensemble import EnsembleActor
from seqcritic.settings_io import settings_from
from seqcritic.training.checkpoint import CheckpointFolder, load_weights, read_description, read_tensors
from seqcritic.training.device import choose_device
from seqcritic.training.packaged import find_packaged, packaged_names

MODEL_FOLDER = "model"
CHECKPOINTS_FOLDER = "checkpoints"
SNAPSHOTS_FOLDER = "snapshots"
PREDICTION_BATCH = 256

Place: TypeAlias = str | Path
Places: TypeAlias = Place | Sequence[Place]
"""Where a model is; several are an ensemble."""


@dataclass(frozen=True)
class Model:
    """A trained actor with what it needs to read and write text."""

    actor: Actor
    task: Task
    settings: Settings
    description: dict[str, Any]

    def predict(self, lines: Sequence[str], search: AnySearch = GREEDY, raw: bool = False) -> list[str]:
        """Return the prediction for each raw line.

        A spelling model corrects long lines in pieces, and keeps case and all characters that it does not know; `raw`
        is for its own text, in its own alphabet.
        """
        if isinstance(lines, str):
            raise UserError("predict takes a list of lines, not one text")
        pieces = [self.task.cut(line) for line in lines]
        flat = [piece for parts in pieces for piece, _ in parts]
        search = resolve_search(search, self.settings)
        predicted: list[str] = []
        for first in range(0, len(flat), PREDICTION_BATCH):
            some = flat[first : first + PREDICTION_BATCH]
            sources, mask = self.task.encode_lines(some)
            found = find_best(self.actor, sources, mask, search, self.task.decode, partial(list, some))
            predicted += self.task.texts(found)
        remaining = iter(predicted)
        return [
            self.task.join(line, parts, [next(remaining) for _ in parts], raw)
            for line, parts in zip(lines, pieces, strict=True)
        ]

    def predict_several(
        self, lines: Sequence[str], search: Search, num_best: int, raw: bool = False
    ) -> list[list[tuple[float, str]]]:
        """Return up to num_best predictions with their scores for each raw line, best first.

        Lines that the model takes in several pieces have no joint score, so they are refused.
        """
        pieces = [self.task.cut(line) for line in lines]
        if any(len(parts) > 1 for parts in pieces):
            longest = max(lines, key=len)
            raise UserError(f"--nbest: this model takes a line as long as '{longest[:40]}…' in several pieces")
        whole = [parts[0] if parts else ("", slice(None)) for parts in pieces]
        sources, mask = self.task.encode_lines([piece for piece, _ in whole])
        found = find_several(self.actor, sources, mask, search, num_best)
        return [
            [
                (each.score, self.task.join(line, parts, [self.task.decode(each.tokens)] * len(parts), raw))
                for each in hypotheses
            ]
            for hypotheses, line, parts in zip(found, lines, pieces, strict=True)
        ]


def find_weights(place: str | Path) -> Path:
    """Return the folder that holds the weights of a packaged model (by name), a model folder or a run."""
    path = find_packaged(place) or Path(place)
    if not path.exists():
        known = packaged_names()
        raise UserError(f"no such run or model: {path}" + (f"; packaged models: {', '.join(known)}" if known else ""))
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


def load_model(place: Places, device: DeviceName = "auto") -> Model:
    """Return the best actor of a run, finished or not, of a model folder, or of a packaged model by its name.

    Where it was trained does not matter. Of a list of several their ensemble, with all else of the first.
    """
    if isinstance(place, str | Path):
        return _load_one(place, device)
    models = [_load_one(each, device) for each in place]
    if not models:
        raise UserError("load_model: name at least one run or model")
    for other, name in zip(models[1:], list(place)[1:], strict=True):
        if _tokens(other) != _tokens(models[0]):
            raise UserError(f"{name}: reads or writes other tokens than {place[0]}; an ensemble needs the same ones")
    if len(models) == 1:
        return models[0]
    actor = EnsembleActor([model.actor for model in models])
    return replace(models[0], actor=actor.eval(), description=models[0].description | {"members": len(models)})


def _tokens(model: Model) -> tuple[str, dict[str, Any], int, int]:
    """Return all that says what the numbers of a model's tokens mean."""
    task = model.task
    return model.settings.data.task, task.vocabularies(), task.num_source_tokens, task.num_target_tokens


def _load_one(place: Place, device: DeviceName) -> Model:
    weights, description = read_network(place, "actor")
    settings = settings_from(description["settings"])
    task = build_task(settings.data, vocabularies=description.get("vocabularies"))
    actor = build_actor(settings, task.num_source_tokens, task.num_target_tokens, torch.Generator())
    load_weights(actor, weights, str(place))
    actor.to(choose_device(device))
    return Model(actor.eval(), task, settings, description)
