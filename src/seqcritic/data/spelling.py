"""The spelling task: text in, batches of (corrupted, clean) windows out, for training and for evaluation."""

from __future__ import annotations

import hashlib
import logging
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqcritic.contracts.batch import EVALUATION_BATCH, Batch, EvaluationSet, RawTexts
from seqcritic.contracts.task import Task
from seqcritic.data.codecs.spelling import SpellingCodec
from seqcritic.data.corruption import derive_seed
from seqcritic.data.text import read_all_lines
from seqcritic.data.typing_noise import TypingNoise
from seqcritic.data.windows import Windows
from seqcritic.errors import UserError
from seqcritic.progress import log
from seqcritic.settings.data import EMBEDDED, SPLITS, SpellingSettings

EMBEDDED_FILE = Path(__file__).with_name("embedded.txt.xz")


class SpellingTask(Task):
    """Windows of text, clean and with characters replaced at random, or with errors as people type them."""

    codec: SpellingCodec

    def __init__(self, settings: SpellingSettings, level: int = logging.DEBUG) -> None:
        self.settings = settings
        self.codec = SpellingCodec(settings.length, changes_length=settings.typing is not None)
        self._noise = settings.noise if settings.typing is None else TypingNoise(settings.typing)
        self.maximum_length = settings.length
        self._level = level
        self._splits: dict[str, Windows] = {}

    def section(self) -> dict[str, Any]:
        """The section `data` of the settings that build this task again."""
        return self.settings.model_dump(mode="json")

    def windows(self, split: str) -> Windows:
        """Return the windows of a split, read on first use: all word starts for training, sentences otherwise."""
        if split not in self._splits:
            settings = self.settings
            windows = Windows(
                self._sentences(split),
                self.codec.vocabulary,
                settings.length,
                settings.minimum_length,
                at_words=split == "train" and settings.windows == "words",
            )
            # Shorter windows alone would pass, and a model of L characters would never see L of them.
            if windows.num_full == 0:
                raise UserError(
                    f"data.{split}: no sentence of {', '.join(self._paths(split))} has {settings.length} "
                    "characters; give longer text or a smaller data.length"
                )
            skipped = f", {windows.num_short} too short" if windows.num_short else ""
            log.log(self._level, f"data.{split}: {len(windows):,} windows of {settings.length} characters{skipped}")
            self._splits[split] = windows
        return self._splits[split]

    @property
    def epoch_size(self) -> int:  # type: ignore[override]
        """How many training windows there are."""
        return len(self.windows("train"))

    def training_batch(self, position: int, size: int, seed: int) -> Batch:
        """Return a batch of the seeded training stream that begins after `position` examples."""
        return self._with_texts(self.windows("train").batch(position, size, seed, self._noise))

    def evaluation_set(self, split: str) -> EvaluationSet:
        """Return the first windows of the split's sentences with noise fixed by data.evaluation_seed."""
        limit = {"valid": self.settings.valid_size, "test": self.settings.test_size}.get(split)
        return self._fixed_examples(split, limit)

    def training_sample(self, size: int) -> EvaluationSet:
        """Return so many training windows, spread evenly, with noise fixed by data.evaluation_seed."""
        return self._fixed_examples("train", size)

    def first_examples(self, size: int) -> list[tuple[str, tuple[str, ...]]]:
        """Return so many validation windows, spread evenly."""
        found = self._fixed_examples("valid", size)
        return list(zip(found.sources, found.all_references, strict=True))

    def _fixed_examples(self, split: str, limit: int | None) -> EvaluationSet:
        windows = self.windows(split)
        chosen = np.arange(len(windows))
        if limit is not None and limit < len(windows):
            # An even spread over the files rather than their beginning.
            chosen = np.unique(np.linspace(0, len(windows) - 1, limit).round().astype(np.int64))
        # One for all batches: each goes on where the noise of the one before it ended.
        generator = torch.Generator().manual_seed(derive_seed(self.settings.evaluation_seed, split))
        batches = [
            self._with_texts(windows.examples(chosen[first : first + EVALUATION_BATCH], self._noise, generator))
            for first in range(0, len(chosen), EVALUATION_BATCH)
        ]
        return EvaluationSet(
            batches,
            [text for batch in batches for text in self.codec.texts(batch.sources)],
            [text for batch in batches for text in self.codec.texts(batch.references)],
        )

    def _with_texts(self, batch: Batch) -> Batch:
        """Return a batch with its texts: every character has an id, so the ids tell them."""
        sources, references = batch.sources, batch.references
        texts = RawTexts(
            torch.arange(len(batch), device="cpu"),
            lambda rows: self.codec.texts(sources[rows]),  # of the batch as it was drawn, on the CPU
            lambda rows: [(text,) for text in self.codec.texts(references[rows])],
            self.codec.decode,
        )
        return replace(batch, texts=texts)

    def fingerprint(self) -> str:
        """Return a short hash of the training and validation text, by which a resumed run knows its data."""
        return f"{self.windows('train').fingerprint()}-{self.windows('valid').fingerprint()}"

    def conditions(self, split: str) -> list[str]:
        """Return what of the data changes a score, for its signature."""
        settings = self.settings
        noise = f"{settings.noise}"
        if settings.typing is not None:
            # Too many numbers for a signature: a hash of them tells whether two are the same.
            noise = f"typing.{hashlib.blake2b(settings.typing.model_dump_json().encode(), digest_size=4).hexdigest()}"
        drawn = [f"L:{settings.length}", f"noise:{noise}", f"evaluation_seed:{settings.evaluation_seed}"]
        return [f"text:{self.windows(split).fingerprint()[:8]}", *drawn]

    def _paths(self, split: str) -> tuple[str, ...]:
        paths: tuple[str, ...] = getattr(self.settings, split)
        return paths

    def _sentences(self, split: str) -> Sequence[str]:
        paths = self._paths(split)
        if paths == (EMBEDDED,):
            return embedded_sentences(split)
        if not paths:
            raise UserError(f"data.{split}: no text given; add data.{split}=FILE (plain or .gz, several with commas)")
        return read_all_lines(paths, f"data.{split}")


def embedded_sentences(split: str) -> list[str]:
    """Return the sentences of one split of the text that comes with the package; the splits have none in common.

    English prose of the documentation of Python, NumPy and PyTorch, frozen in one file so that results on two machines
    are comparable whatever is installed there. `NOTICE` beside it has its sources and licences.
    """
    parts = lzma.decompress(EMBEDDED_FILE.read_bytes()).decode().split("\n\n")
    return parts[SPLITS.index(split)].split("\n")  # the splits are in this order, an empty line between them
