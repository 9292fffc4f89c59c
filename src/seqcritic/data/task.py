"""What a task must offer the trainer and the evaluator, and the tasks by their settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from seqcritic.contracts.parts import part_class
from seqcritic.contracts.registry import TASKS
from seqcritic.data.batch import Batch, EvaluationSet
from seqcritic.data.spelling import SpellingData
from seqcritic.data.translation import TranslationData
from seqcritic.data_settings import OwnTaskSettings, SpellingSettings, TranslationSettings


class Task(Protocol):
    """Pairs (X, Y) as numbers for the networks and as text for people."""

    @property
    def num_source_tokens(self) -> int:
        """How many tokens the actor may read."""
        ...

    @property
    def num_target_tokens(self) -> int:
        """How many tokens the actor may write."""
        ...

    @property
    def unknown(self) -> int | None:
        """The number of the target side's unknown token, which never matches anything."""
        ...

    @property
    def lowercase(self) -> bool:
        """Whether the target side is without case, so that references are compared without it."""
        ...

    @property
    def epoch_size(self) -> int | None:
        """How many training examples there are; None where the task does not know."""
        ...

    def training_batch(self, position: int, size: int, seed: int) -> Batch:
        """Return a batch of the seeded training stream that begins after `position` examples."""
        ...

    def evaluation_set(self, split: str) -> EvaluationSet:
        """Return the fixed pairs of a split."""
        ...

    def training_sample(self, size: int) -> EvaluationSet:
        """Return at most so many fixed pairs of those that are trained on, spread evenly over the text."""
        ...

    def first_examples(self, size: int) -> list[tuple[str, tuple[str, ...]]]:
        """Return so many raw pairs of valid, or fewer, each with all its references, reading no more than it takes."""
        ...

    def fingerprint(self) -> str:
        """Return a short hash by which a resumed run knows its data."""
        ...

    def texts(self, tokens: torch.Tensor) -> list[str]:
        """Return rows of target numbers as text."""
        ...

    def decode(self, numbers: Sequence[int]) -> str:
        """Return target numbers as text, up to the end token."""
        ...

    def tokens(self, numbers: Sequence[int]) -> list[str]:
        """Return target numbers as single tokens, up to the end token."""
        ...

    def cut(self, line: str) -> list[tuple[str, slice]]:
        """Return a raw line in the pieces the model takes, each with the part of it whose prediction counts."""
        ...

    def join(self, line: str, pieces: Sequence[tuple[str, slice]], predictions: Sequence[str], raw: bool) -> str:
        """Return the predictions of a raw line's pieces as one line.

        Where the model reads a normal form of the line, what it left alone is as in the line, unless `raw`.
        """
        ...

    def encode_lines(self, lines: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return pieces of source lines as padded numbers and their mask."""
        ...

    def vocabularies(self) -> dict[str, Any]:
        """Return what must be stored with a model, as JSON, so that it can be used without the training text."""
        ...

    def conditions(self, split: str) -> list[str]:
        """Return what of the data changes a score, for its signature."""
        ...


def build_task(
    settings: SpellingSettings | TranslationSettings | OwnTaskSettings,
    report: Callable[[str], None] = lambda line: None,
    vocabularies: dict[str, Any] | None = None,
) -> Task:
    """Return the task of the settings; `vocabularies` are those stored with a model, where there is one."""
    if isinstance(settings, OwnTaskSettings):
        return part_class(TASKS, settings.task)(**settings.arguments)
    if isinstance(settings, SpellingSettings):
        return SpellingData(settings, report)
    if vocabularies:
        return TranslationData.from_vocabularies(settings, vocabularies, report)
    return TranslationData(settings, report)
