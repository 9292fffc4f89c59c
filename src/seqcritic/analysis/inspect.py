"""The critic of a trained run, on view for one pair of texts."""

from __future__ import annotations

from pathlib import Path

import torch

from seqcritic.analysis.inspect_example import Detokeniser, RewardScore, inspect_example
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.parts import part_class
from seqcritic.contracts.registry import CRITICS
from seqcritic.errors import UserError
from seqcritic.models.build import build_actor, build_critic
from seqcritic.report.values import ValueTable
from seqcritic.settings.tree import DeviceName
from seqcritic.training.checkpoint import load_weights
from seqcritic.training.model import Model, open_model, read_network


def inspect(
    run: str | Path | Model,
    source: str,
    reference: str,
    prediction: str | None = None,
    top: int = 3,
    device: DeviceName = "auto",
) -> ValueTable:
    """Follow a prediction (None for the greedy one) of a run's actor with the values of its critic."""
    model = open_model(run, device)
    critic = load_critic(model)
    codec, settings = model.codec, model.settings
    # A text to be spelled is not cut into pieces, for its values are wanted in one.
    given, wanted = _require_text(codec, source, "source"), _require_text(codec, reference, "reference")
    score = model.score
    example = Batch.of(codec, [given], [wanted])
    return inspect_example(
        model.actor,
        critic,
        example,
        Detokeniser(codec.source_tokens, codec.tokens, codec.decode),
        RewardScore(score, score.description, settings.score.shaping),
        prediction=None if prediction is None else codec.encode_references([codec.normalise(prediction)])[0],
        top=top,
        title=f"{settings.name}, {settings.method.label}, seed {settings.seed}",
        # Without the end token, which is no part of a text.
        note=_write_note(model, max(example.sources.shape[1], example.references.shape[1]) - 1),
    )


def _build_critic(model: Model) -> Critic:
    settings, codec, actor = model.settings, model.codec, model.actor
    if part_class(CRITICS, settings.critic.kind).copies_actor:
        # Its frozen copy is of the actor before training: made of the trained one it would be another model's.
        actor = build_actor(settings, codec.num_source_tokens, codec.num_target_tokens, torch.Generator())
    return build_critic(settings, actor, torch.Generator())


def load_critic(model: Model) -> Critic:
    """Return the critic that was trained beside a run's actor, or say that the method has none."""
    if "critic" not in model.description["digests"]:
        run, label = model.place, model.settings.method.label
        if model.settings.method.needs_critic:
            raise UserError(f"{run} was exported without its critic; give the run that it comes from")
        raise UserError(f"{run} has no critic ({label} trains none); give a run of actor-critic or reinforce-critic")
    weights, _ = read_network(model.place, "critic")
    # A critic that was passed as an object is known to nobody by name: it comes with the model.
    critic: Critic = model.given.get("critic") or _build_critic(model)
    with torch.no_grad():
        load_weights(critic, weights, str(model.place))
    return critic.to(model.actor.device).eval()


def _require_text(codec: Codec, text: str, name: str) -> str:
    """Return a text as the data would have it."""
    found = codec.normalise(text)
    if not codec.cut(found):
        raise UserError(f"{name}: empty; give at least one character that is not white space")
    return found


def _write_note(model: Model, length: int) -> str:
    """Say what a reader must know before taking the values of texts of some length, in tokens, at their word."""
    notes = []
    longest = model.task.maximum_length
    if longest is not None and length > longest:
        unit = "characters" if model.codec.score_options().tokens == "characters" else "tokens"
        notes.append(f"The model was trained on texts of at most {longest} {unit}; this one has {length}.")
    if not model.description["progress"]["finished"]:
        notes.append("The run is not finished; its critic may hardly be trained.")
    return " ".join(notes)
