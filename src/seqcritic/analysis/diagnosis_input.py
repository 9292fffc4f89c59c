"""From a run, or from an actor and a critic of anybody's, to what is diagnosed: with a fixed set of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from seqcritic.analysis.estimators import GAE_LAMBDA, Subject
from seqcritic.analysis.inspect import load_critic
from seqcritic.contracts.batch import Batch, EvaluationSet, RawTexts, pad_rows, unpadded
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.registry import SCORES
from seqcritic.contracts.score import References, Score, ScoreOptions
from seqcritic.errors import UserError
from seqcritic.evaluation.run import load_for_evaluation
from seqcritic.methods.ppo import PpoSettings
from seqcritic.scores.shared.function import as_score
from seqcritic.settings.methods import MethodSettings, method_section
from seqcritic.settings.tree import DeviceName
from seqcritic.training.checkpoint import load_weights, under
from seqcritic.training.model import Model, read_network

BATCH = 128  # examples in memory at once


Pairs: TypeAlias = Sequence[tuple[str, References]]
Examples: TypeAlias = Pairs | EvaluationSet | Batch | Sequence[Batch]
"""Pairs of texts, for which a codec is needed; a set of a task; or batches, as they are."""
AnyScore: TypeAlias = str | Score | Callable[..., Any]
"""A name of docs/scores.md, a Score, or a function of texts."""


@dataclass(frozen=True)
class DiagnosisInput:
    """A checkpoint of a run, or an actor and a critic, ready for diagnosis."""

    label: str
    method: str
    updates: int | None
    split: str
    seed: int
    settings: MethodSettings
    subject: Subject
    batches: list[Batch]


def load_diagnosis_input(
    place: str | Path | Model, split: str, num_examples: int, device: DeviceName = "auto"
) -> DiagnosisInput:
    """Return the networks of a run, model or checkpoint folder, and examples spread evenly over a split of its data.

    A finished run and a model folder hold the best actor and the last critic; a checkpoint, and a run under way, hold
    the actor beside which the critic was learning. A loaded model is taken with the actor that it has. Dropout is off.
    """
    model, task = load_for_evaluation(place, (), device)
    critic = load_critic(model)
    # A checkpoint holds both the best actor and the present one; the critic has learnt beside the present one.
    if "networks" in model.description["digests"] and not isinstance(place, Model):
        networks, _ = read_network(place, "networks")
        load_weights(model.actor, under("actor", networks), str(place))
    settings = model.settings
    updates = model.description["progress"]["total_updates"]
    examples = choose_examples(task.evaluation_set(split), num_examples, model.actor.special.padding)
    own = settings.method.own
    gae_lambda = own.gae_lambda if isinstance(own, PpoSettings) else GAE_LAMBDA
    subject = Subject(model.actor, critic, model.score, settings.score.shaping, gae_lambda)
    return DiagnosisInput(
        _label(model.place if isinstance(place, Model) else Path(place), updates),
        settings.method.label + subject.gae,
        updates,
        split,
        settings.seed,
        # Held masks would be drawn in evaluation too: a diagnosis has no dropout, whatever the run had.
        settings.method.model_copy(update={"reward_dropout": "none"}),
        subject,
        [batch.to(model.actor.device) for batch in examples],
    )


def compose_diagnosis_input(
    subject: Subject, examples: Examples, num_examples: int, codec: Codec | None, label: str, seed: int
) -> DiagnosisInput:
    """Return an actor and a critic that come from no run, with the examples that they are diagnosed on."""
    actor = subject.actor
    if not subject.weights:
        raise UserError("actor: none of its weights can be trained; call requires_grad_() on those that will be")
    batches = [batch.to(actor.device) for batch in _as_batches(examples, num_examples, codec, actor.special.padding)]
    method = type(subject.critic).__name__ + subject.gae
    # No run says which: the usual settings of a method with a critic, whose returns count no entropy.
    settings = method_section()(name="reinforce-critic", reward_dropout="none")
    return DiagnosisInput(label or type(actor).__name__, method, None, "", seed, settings, subject, batches)


def choose_score(given: AnyScore, codec: Codec | None) -> Score:
    """Return the score that was passed, or build the one that was named, for the texts of the codec."""
    if isinstance(given, str):
        return SCORES.find(given).build(ScoreOptions() if codec is None else codec.score_options())
    return as_score(given)


def _as_batches(examples: Examples, num_examples: int, codec: Codec | None, padding: int) -> list[Batch]:
    if isinstance(examples, EvaluationSet):
        return choose_examples(examples, num_examples, padding)
    found = [examples] if isinstance(examples, Batch) else list(examples)
    if not found:
        raise UserError("examples: none; give pairs of texts, an EvaluationSet or batches")
    # Taken as they are, however many: who cut them into batches has chosen.
    if all(isinstance(one, Batch) for one in found):
        return [one for one in found if isinstance(one, Batch)]
    if codec is None:
        raise UserError("examples: pairs of texts need the codec that makes ids of them; give codec=…")
    sources, references = zip(*found, strict=True)
    return choose_examples(EvaluationSet.of(codec, sources, references), num_examples, padding)


def choose_examples(evaluation_set: EvaluationSet, num_examples: int, padding: int = 0) -> list[Batch]:
    """Return `num_examples` pairs, or all where there are fewer, spread evenly over a set."""
    sources = [row for batch in evaluation_set.batches for row in unpadded(batch.sources, batch.source_mask)]
    references = [row for batch in evaluation_set.batches for row in unpadded(batch.references, batch.reference_mask)]
    # Evenly, not at random: another number of examples changes few of them, and the same number none.
    spread = np.linspace(0, len(sources) - 1, min(num_examples, len(sources))).round().astype(int)
    chosen = np.unique(spread).tolist()
    # All batches of a set are read alike; a set of tokens alone has no texts to read.
    known = evaluation_set.batches[0].texts
    raw = known and RawTexts.of(evaluation_set.sources, evaluation_set.all_references, known.decode, known.encode)
    return [
        Batch(
            # Padded anew: examples that stood in different batches now stand in one.
            *pad_rows([sources[row] for row in rows]),
            *pad_rows([references[row] for row in rows], padding),
            raw and raw.select(torch.tensor(rows)),
        )
        for rows in (chosen[first : first + BATCH] for first in range(0, len(chosen), BATCH))
    ]


def _label(place: Path, updates: int) -> str:
    """Name a run by its folder, and a checkpoint within it by the updates made."""
    name = place.resolve().name
    # A checkpoint's folder is called by its number of updates; two above it is the run's.
    if not name.isdecimal():
        return name
    return f"{place.resolve().parent.parent.name} at {updates:,}"
