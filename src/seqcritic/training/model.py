"""Trained models on disk: a folder with the actor, the critic where there is one, and a description.

A run exports one when it finishes; some come with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.batch import pad
from seqcritic.contracts.codec import Codec, codec_from_dict
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.score import Score
from seqcritic.contracts.task import Task
from seqcritic.data.codecs.spelling import SpellingCodec
from seqcritic.data.task import build_task
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
from seqcritic.decoding.search import GREEDY, AnySearch, Search, find_best, find_several
from seqcritic.errors import UserError, nearest
from seqcritic.evaluation.evaluate import build_score, build_weighted, introduce, resolve_search
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.models.build import build_actor
from seqcritic.models.ensemble import EnsembleActor
from seqcritic.scores.shared.function import as_score
from seqcritic.scores.weighted_sum import Weighted
from seqcritic.settings.io import settings_from
from seqcritic.settings.tree import DeviceName, Settings
from seqcritic.training.checkpoint import CheckpointFolder, load_weights, read_description, read_tensors
from seqcritic.training.device import choose_device, predicting
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
    """A trained actor with what it needs to read and write text.

    `given`: parts that were passed from Python instead of built from the settings, by name.
    """

    actor: Actor
    codec: Codec
    settings: Settings
    description: dict[str, Any]
    place: Path
    given: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def task(self) -> Task:
        """The data it was trained on."""
        # With the codec that is stored with the weights: ids must mean what they meant in training.
        task: Task | None = self.given.get("task")
        return build_task(self.settings.data, codec=self.codec) if task is None else task

    @cached_property
    def score(self) -> Score:
        """The score it was trained for and is judged by."""
        given: Score | Weighted | None = self.given.get("score")
        if isinstance(given, Weighted):
            given = build_weighted(given, self.settings, self.codec)
        return introduce(build_score(self.settings, self.codec) if given is None else given, lambda: self.task)

    def predicting(self, search: AnySearch) -> AbstractContextManager[object]:
        """Return the context in which it predicts, with products as wide as its settings say."""
        # One hypothesis is soon decoded: where the two best tokens are close, float32 costs nothing and is right.
        precision = "float32" if search == GREEDY else self.settings.precision
        return predicting(precision, self.actor.device)

    def resolve(self, search: AnySearch) -> AnySearch:
        """Return a search as this model makes it."""
        found = resolve_search(search, self.settings, self.codec, lambda: self.score)
        if isinstance(found, MinimumBayesRisk) and isinstance(found.utility, Score):
            introduce(found.utility, lambda: self.task)
        return found

    def predict(
        self, lines: Sequence[str], search: AnySearch = GREEDY, raw: bool = False, margin: float | None = None
    ) -> list[str]:
        """Return the prediction for each raw line.

        A spelling model corrects long lines in pieces, and keeps case and all characters that it does not know; `raw`
        is for its own text, in its own alphabet. With a `margin`, a piece is left as it is unless the model finds its
        prediction likelier by so many nats.
        """
        if margin is not None and not isinstance(self.codec, SpellingCodec):
            raise UserError("margin: only a spelling model can leave its input as it is; leave the margin out")
        # A text is a sequence too: each of its characters would be taken for a line.
        if isinstance(lines, str):
            raise UserError("predict takes a list of lines, not one text")
        pieces = [self.codec.cut(line) for line in lines]
        # Pieces of all lines together, so that batches are full; an empty line has none.
        flat = [piece for parts in pieces for piece, _ in parts]
        search = self.resolve(search)
        predicted: list[str] = []
        for first in range(0, len(flat), PREDICTION_BATCH):
            some = flat[first : first + PREDICTION_BATCH]
            sources, mask = self.codec.encode_sources(some)
            with self.predicting(search):
                found = find_best(self.actor, sources, mask, search, self.codec.decode, partial(list, some))
            texts = self.codec.texts(found)
            if margin is not None:
                # In nats [B]: by how much the model finds its prediction likelier than what was given.
                gains = self._log_probabilities(sources, mask, texts) - self._log_probabilities(sources, mask, some)
                texts = [
                    text if gain >= margin else piece
                    for text, piece, gain in zip(texts, some, gains.tolist(), strict=True)
                ]
            predicted += texts
        remaining = iter(predicted)
        return [
            self.codec.join(line, parts, [next(remaining) for _ in parts], raw)
            for line, parts in zip(lines, pieces, strict=True)
        ]

    @torch.no_grad()
    def _log_probabilities(self, sources: Tensor, mask: Tensor, texts: Sequence[str]) -> Tensor:
        """Return log p(text | source) [B] of texts for encoded sources [B, S]."""
        given = (sources, mask, *pad(self.codec.encode_references(texts)))
        sources, mask, tokens, counted = (each.to(self.actor.device) for each in given)
        features, _ = self.actor.features(self.actor.encode(sources, mask), tokens, counted)
        return token_log_probabilities(self.actor.logits_of(features), tokens).sum(dim=1)  # [B, T], 0 where masked

    def predict_several(
        self, lines: Sequence[str], search: Search, num_best: int, raw: bool = False
    ) -> list[list[tuple[float, str]]]:
        """Return up to num_best predictions with their scores for each raw line, best first.

        Lines that the model takes in several pieces have no joint score, so they are refused.
        """
        pieces = [self.codec.cut(line) for line in lines]
        if any(len(parts) > 1 for parts in pieces):
            longest = max(lines, key=len)
            raise UserError(f"n-best: this model takes a line as long as '{longest[:40]}…' in several pieces")
        # An empty line is searched as an empty text, so that every line has its row; `join` leaves it empty.
        whole = [parts[0] if parts else ("", slice(None)) for parts in pieces]
        sources, mask = self.codec.encode_sources([piece for piece, _ in whole])
        with self.predicting(search):
            found = find_several(self.actor, sources, mask, search, num_best)
        return [
            [
                (each.score, self.codec.join(line, parts, [self.codec.decode(each.tokens)] * len(parts), raw))
                for each in hypotheses
            ]
            for hypotheses, line, parts in zip(found, lines, pieces, strict=True)
        ]


def find_weights(place: str | Path) -> Path:
    """Return the folder that holds the weights of a packaged model (by name), a model folder or a run."""
    path = find_packaged(place) or Path(place)
    if not path.exists():
        known = packaged_names()
        raise UserError(f"no such run or model: {path}{nearest(str(place), known)}; packaged: {', '.join(known)}")
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


def stored_codec(description: Mapping[str, Any], place: str | Path) -> Codec:
    """Return the codec of a run or model from its description."""
    try:
        return codec_from_dict(description.get("codec"))
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def open_model(place: Places | Model, device: DeviceName = "auto") -> Model:
    """Return the model of a place, or one that is loaded as it is."""
    return place if isinstance(place, Model) else load_model(place, device)


def load_model(
    place: Places,
    device: DeviceName = "auto",
    *,
    actor: Actor | None = None,
    critic: Critic | None = None,
    task: Task | None = None,
    score: Score | Weighted | Callable[..., Any] | None = None,
) -> Model:
    """Return the best actor of a run, finished or not, of a model folder, or of a packaged model by its name.

    The device that it was trained on does not matter. A list of several gives their ensemble; all but the actor is
    then that of the first.

    A run may have been composed of objects that its folder cannot describe: pass those that will be used. An actor or
    a critic that is passed gets the weights of the run.
    """
    # A sum of scores is built when it is asked for: its parts may be names, which need settings and codec.
    own_score = score if score is None or isinstance(score, Weighted) else as_score(score)
    given = {"critic": critic, "task": task, "score": own_score}
    if isinstance(place, str | Path):
        return _load_one(place, device, actor, given)
    if actor is not None:
        raise UserError("actor: the members of an ensemble are built from their folders; load the one run alone")
    models = [_load_one(each, device, None, given) for each in place]
    if not models:
        raise UserError("load_model: name at least one run or model")
    for other, name in zip(models[1:], list(place)[1:], strict=True):
        if not other.codec.reads_like(models[0].codec):
            raise UserError(f"{name}: reads or writes other tokens than {place[0]}; an ensemble needs the same ones")
    if len(models) == 1:
        return models[0]
    # How many members there are stands in the signature of scores.
    actor = EnsembleActor([model.actor for model in models])
    return replace(models[0], actor=actor.eval(), description=models[0].description | {"members": len(models)})


def _load_one(place: Place, device: DeviceName, actor: Actor | None, given: Mapping[str, Any]) -> Model:
    weights, description = read_network(place, "actor")
    settings = settings_from(description["settings"])
    codec = stored_codec(description, place)
    if actor is None:
        # Any generator will do: what is drawn is loaded over.
        actor = build_actor(settings, codec.num_source_tokens, codec.num_target_tokens, torch.Generator())
    with torch.no_grad():
        load_weights(actor, weights, str(place))
    actor.to(choose_device(device))
    return Model(actor.eval(), codec, settings, description, Path(place), given)
