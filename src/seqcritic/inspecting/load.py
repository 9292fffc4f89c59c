"""The critic of a trained run, on view for one pair of texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from seqcritic.config import DeviceName
from seqcritic.contracts.critic import Critic
from seqcritic.data.batch import Batch, RawTexts, pad
from seqcritic.data.spelling import SpellingData
from seqcritic.data.task import Task
from seqcritic.data.translation import TranslationData
from seqcritic.data.vocabulary import normalise_spelling, spelling_table
from seqcritic.data.words import without_reserved
from seqcritic.errors import UserError
from seqcritic.evaluation import build_score
from seqcritic.inspecting.gather import Judge, TokensOf, Wording, inspect_example
from seqcritic.models.build import build_critic
from seqcritic.report.values import ValueTable
from seqcritic.training.checkpoint import load_weights
from seqcritic.training.model import Model, load_model, read_network

Encode = Callable[[str], list[int]]


@dataclass(frozen=True)
class Languages:
    """How a task reads raw text on both sides, shows a source's tokens, and how long its training texts were."""

    encode_source: Encode
    encode_target: Encode
    read_target: Callable[[str], str]  # a reference as a score of texts sees it
    source_tokens: TokensOf
    trained_length: str
    longest: int


def inspect(
    run: str | Path,
    source: str,
    reference: str,
    prediction: str | None = None,
    top: int = 3,
    device: DeviceName = "auto",
) -> ValueTable:
    """Follow a prediction (None for the greedy one) of a run's actor with the values of its critic."""
    model = load_model(run, device)
    critic = load_critic(run, model)
    task, settings = model.task, model.settings
    languages = languages_of(task)
    sources = _require_tokens(languages.encode_source(source), "source")
    references = _require_tokens(languages.encode_target(reference), "reference")
    texts = RawTexts.of([source], [(languages.read_target(reference),)], task.decode)
    score = build_score(settings)
    return inspect_example(
        model.actor,
        critic,
        Batch(*pad([sources]), *pad([references]), texts),
        Wording(languages.source_tokens, task.tokens, task.decode),
        Judge(score, score.description, settings.score.shaping),
        prediction=None if prediction is None else languages.encode_target(prediction),
        top=top,
        title=f"{settings.name}, {settings.method.label}, seed {settings.seed}",
        note=_write_note(model, languages, max(len(sources), len(references))),
    )


def load_critic(run: str | Path, model: Model) -> Critic:
    """Return the critic that was trained beside a run's actor, or say that the method has none."""
    if "critic" not in model.description["digests"]:
        label = model.settings.method.label
        if model.settings.method.needs_critic:
            raise UserError(f"{run} was exported without its critic; give the run that it comes from")
        raise UserError(f"{run} has no critic ({label} trains none); give a run of actor-critic or reinforce-critic")
    weights, _ = read_network(run, "critic")
    critic = build_critic(model.settings, model.actor, torch.Generator())
    load_weights(critic, weights, str(run))
    return critic.to(model.actor.device).eval()


def languages_of(task: Task) -> Languages:
    """Return how a task reads; a text to be spelled is not cut into pieces, for its values are wanted in one."""
    if isinstance(task, SpellingData):
        vocabulary, table = task.vocabulary, spelling_table()

        def read(text: str) -> str:
            return normalise_spelling(text, table)

        def encode(text: str) -> list[int]:
            return vocabulary.encode(read(text))

        length = task.settings.length
        return Languages(encode, encode, read, vocabulary.decode, f"{length} characters", length)
    assert isinstance(task, TranslationData)
    source, target, length = task.source_vocabulary, task.target_vocabulary, task.settings.maximum_length
    return Languages(source.encode, target.encode, without_reserved, source.tokens, f"at most {length} tokens", length)


def _require_tokens(numbers: list[int], name: str) -> list[int]:
    if not numbers:
        raise UserError(f"{name}: empty; give at least one character that is not white space")
    return numbers


def _write_note(model: Model, languages: Languages, length: int) -> str:
    """Say what a reader must know before taking the values at their word."""
    notes = []
    if length > languages.longest:
        notes.append(f"The model was trained on texts of {languages.trained_length}; this one has {length}.")
    if not model.description["progress"]["finished"]:
        notes.append("The run is not finished; its critic may hardly be trained.")
    return " ".join(notes)
