"""From a run to what is diagnosed: the actor of that checkpoint, its critic, and a fixed set of examples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from seqcritic.analysis.estimators import Subject
from seqcritic.analysis.inspect import load_critic
from seqcritic.contracts.batch import Batch, EvaluationSet, RawTexts, pad_rows, unpadded
from seqcritic.evaluation.run import load_for_evaluation
from seqcritic.settings.tree import DeviceName, Settings
from seqcritic.training.checkpoint import load_weights, under
from seqcritic.training.model import read_network

BATCH = 128  # examples in memory at once


@dataclass(frozen=True)
class DiagnosisInput:
    """A checkpoint of a run, ready for diagnosis."""

    label: str
    settings: Settings
    updates: int
    subject: Subject
    batches: list[Batch]


def load_diagnosis_input(
    place: str | Path, split: str, num_examples: int, device: DeviceName = "auto"
) -> DiagnosisInput:
    """Return the networks of a run, model or checkpoint folder, and examples spread evenly over a split of its data.

    A finished run and a model folder hold the best actor and the last critic; a checkpoint, and a run under way, hold
    the actor beside which the critic was learning. Dropout is off.
    """
    model, task = load_for_evaluation(place, (), device)
    critic = load_critic(model)
    if "networks" in model.description["digests"]:
        networks, _ = read_network(place, "networks")
        load_weights(model.actor, under("actor", networks), str(place))
    none = model.settings.method.model_copy(update={"reward_dropout": "none"})
    settings = model.settings.model_copy(update={"method": none})
    subject = Subject(model.actor, critic, model.score, settings.score.shaping)
    updates = model.description["progress"]["total_updates"]
    examples = choose_examples(task.evaluation_set(split), num_examples, model.actor.special.padding)
    batches = [batch.to(model.actor.device) for batch in examples]
    return DiagnosisInput(_label(Path(place), updates), settings, updates, subject, batches)


def choose_examples(evaluation_set: EvaluationSet, num_examples: int, padding: int = 0) -> list[Batch]:
    """Return so many pairs, or all, spread evenly over a set."""
    sources = [row for batch in evaluation_set.batches for row in unpadded(batch.sources, batch.source_mask)]
    references = [row for batch in evaluation_set.batches for row in unpadded(batch.references, batch.reference_mask)]
    spread = np.linspace(0, len(sources) - 1, min(num_examples, len(sources))).round().astype(int)
    chosen = np.unique(spread).tolist()
    known = evaluation_set.batches[0].texts
    raw = known and RawTexts.of(evaluation_set.sources, evaluation_set.all_references, known.decode, known.encode)
    return [
        Batch(
            *pad_rows([sources[row] for row in rows]),
            *pad_rows([references[row] for row in rows], padding),
            raw and raw.select(torch.tensor(rows)),
        )
        for rows in (chosen[first : first + BATCH] for first in range(0, len(chosen), BATCH))
    ]


def _label(place: Path, updates: int) -> str:
    """Name a run by its folder, and a checkpoint within it by the updates made."""
    name = place.resolve().name
    if not name.isdecimal():
        return name
    return f"{place.resolve().parent.parent.name} at {updates:,}"
