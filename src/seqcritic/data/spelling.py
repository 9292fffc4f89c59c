"""The spelling task: text in, batches of (corrupted, clean) windows out, for training and for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from seqcritic.data.batch import Batch, EvaluationSet, RawTexts, pad
from seqcritic.data.corruption import derive_seed
from seqcritic.data.embedded import embedded_sentences
from seqcritic.data.restoring import align, restore
from seqcritic.data.text import read_all_lines
from seqcritic.data.vocabulary import SPELLING_ALPHABET, Vocabulary, normalise_spelling, spelling_table
from seqcritic.data.windows import Windows
from seqcritic.data_settings import EMBEDDED, SpellingSettings
from seqcritic.errors import UserError

EVALUATION_BATCH = 256


class SpellingData:
    """Everything the trainer and the evaluator ask of a task (see `data/task.py`)."""

    # '#' stands for what the alphabet lacks and is a character as others are: kept, it is what the text has there.
    unknown: int | None = None
    lowercase = False  # its texts have none to leave out

    def __init__(self, settings: SpellingSettings, report: Callable[[str], None] = lambda line: None) -> None:
        self.settings = settings
        self.vocabulary = Vocabulary(SPELLING_ALPHABET)
        self._report = report
        self._table = spelling_table()
        self._splits: dict[str, Windows] = {}

    def windows(self, split: str) -> Windows:
        """Return the windows of a split, read on first use: all word starts for training, sentences otherwise."""
        if split not in self._splits:
            settings = self.settings
            windows = Windows(
                self._sentences(split),
                self.vocabulary,
                settings.length,
                settings.minimum_length,
                at_words=split == "train" and settings.windows == "words",
            )
            if windows.num_full == 0:
                raise UserError(
                    f"data.{split}: no sentence of {', '.join(self._paths(split))} has {settings.length} "
                    "characters; give longer text or a smaller data.length"
                )
            skipped = f", {windows.num_short} too short" if windows.num_short else ""
            self._report(f"data.{split}: {len(windows):,} windows of {settings.length} characters{skipped}")
            self._splits[split] = windows
        return self._splits[split]

    @property
    def epoch_size(self) -> int:
        """How many training windows there are."""
        return len(self.windows("train"))

    def training_batch(self, position: int, size: int, seed: int) -> Batch:
        """Return a batch of the seeded training stream that begins after `position` examples."""
        return self._with_texts(self.windows("train").batch(position, size, seed, self.settings.noise))

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
        generator = torch.Generator().manual_seed(derive_seed(self.settings.evaluation_seed, split))
        batches = [
            self._with_texts(windows.examples(chosen[first : first + EVALUATION_BATCH], self.settings.noise, generator))
            for first in range(0, len(chosen), EVALUATION_BATCH)
        ]
        return EvaluationSet(
            batches,
            [text for batch in batches for text in self.texts(batch.sources)],
            [text for batch in batches for text in self.texts(batch.references)],
        )

    def _with_texts(self, batch: Batch) -> Batch:
        """Return a batch with its texts: every character has a number, so the numbers tell them."""
        sources, references = batch.sources, batch.references
        texts = RawTexts(
            torch.arange(len(batch), device="cpu"),
            lambda rows: self.texts(sources[rows]),
            lambda rows: [(text,) for text in self.texts(references[rows])],
            self.decode,
        )
        return replace(batch, texts=texts)

    def fingerprint(self) -> str:
        """Return a short hash of the training and validation text, by which a resumed run knows its data."""
        return f"{self.windows('train').fingerprint()}-{self.windows('valid').fingerprint()}"

    def texts(self, tokens: torch.Tensor) -> list[str]:
        """Return rows of token numbers as strings, each cut at its end token."""
        return [self.decode(row) for row in tokens.tolist()]

    def decode(self, numbers: Sequence[int]) -> str:
        """Return target numbers as a string, up to the end token."""
        return "".join(self.vocabulary.decode(numbers))

    @property
    def num_source_tokens(self) -> int:
        """How many tokens the actor may read, the end token counted."""
        return len(self.vocabulary)

    @property
    def num_target_tokens(self) -> int:
        """How many tokens the actor may write, the end token counted."""
        return len(self.vocabulary)

    def vocabularies(self) -> dict[str, Any]:
        """Return nothing to store with a model: the alphabet is fixed."""
        return {}

    def conditions(self, split: str) -> list[str]:
        """Return what of the data changes a score, for its signature."""
        settings = self.settings
        noise = [f"L:{settings.length}", f"noise:{settings.noise}", f"evaluation_seed:{settings.evaluation_seed}"]
        return [f"text:{self.windows(split).fingerprint()[:8]}", *noise]

    def tokens(self, numbers: Sequence[int]) -> list[str]:
        """Return target numbers as single tokens, up to the end token."""
        return self.vocabulary.decode(numbers)

    def cut(self, line: str) -> list[tuple[str, slice]]:
        """Cut a raw line, brought to the alphabet, into windows as long as those the model was trained on.

        Windows start at words where they can, half a window apart or less, and each comes with the part of it that
        counts: of what two share, the first two thirds count in the earlier one, because a model knows little of a
        window's first and last characters, and more of what follows others. So characters stand in windows of L but
        are taken once. A line shorter than L is repeated to fill its window.
        """
        text, length = normalise_spelling(line, self._table), self.settings.length
        if not text:
            return []
        if len(text) <= length:
            filled = f"{text} " * (length // (len(text) + 1) + 1)
            return [(filled[:length] if len(text) < length else text, slice(0, len(text)))]
        starts = [0]
        while starts[-1] < len(text) - length:
            farthest = starts[-1] + max(1, length // 2)
            word = text.rfind(" ", starts[-1] + 1, farthest) + 1
            starts.append(min(word or farthest, len(text) - length))
        borders = [later + 2 * (earlier + length - later) // 3 for earlier, later in pairwise(starts)]
        counted = zip(starts, [0, *borders], [*borders, len(text)], strict=True)
        return [(text[start : start + length], slice(first - start, end - start)) for start, first, end in counted]

    def join(self, line: str, pieces: Sequence[tuple[str, slice]], predictions: Sequence[str], raw: bool) -> str:
        """Return the predictions of a line's windows as one line: the model's own text, or the line corrected by it."""
        written = [
            entry
            for (window, counted), prediction in zip(pieces, predictions, strict=True)
            for entry in align(window, prediction)[counted]
        ]
        return "".join(written) if raw else restore(line, written, self._table)

    def encode_lines(self, lines: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return lines of the alphabet as padded numbers and their mask."""
        return pad([self.vocabulary.encode(line) for line in lines])

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
