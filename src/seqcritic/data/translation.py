"""The translation task: pairs of texts in, batches of (source, translation) out, for training and for evaluation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqcritic.cache_folder import default_cache_directory
from seqcritic.data.batch import Batch, EvaluationSet, RawTexts, pad
from seqcritic.data.bucketing import Buckets
from seqcritic.data.parallel import Pair, named_files, read_pairs, with_progress
from seqcritic.data.token_cache import (
    EncodedPairs,
    PairFilter,
    encoded_pairs,
    file_signature,
    key_of,
    write_atomically,
)
from seqcritic.data.tokens import TextVocabulary, learn_vocabulary, vocabulary_digest, vocabulary_from_dict
from seqcritic.data.words import RULES_VERSION, UNKNOWN_WORD
from seqcritic.data_settings import PairFiles, TranslationSettings
from seqcritic.errors import UserError

EVALUATION_BATCH = 256
EVALUATION_PLACES = 1 << 14

Report = Callable[[str], None]


class TranslationData:
    """Everything the trainer and the evaluator ask of a task (see `data/task.py`), read when it is asked for."""

    def __init__(
        self, settings: TranslationSettings, report: Report = lambda line: None, cache: Path | None = None
    ) -> None:
        self.settings = settings
        self._report = report
        self._cache = cache
        self._stored: dict[str, Any] | None = None
        self._evaluated: dict[str, list[Pair]] = {}

    @classmethod
    def from_vocabularies(
        cls,
        settings: TranslationSettings,
        stored: dict[str, Any],
        report: Report = lambda line: None,
        cache: Path | None = None,
    ) -> TranslationData:
        """Return the task with the vocabularies that `vocabularies` returned, learnt from text that may be gone."""
        data = cls(settings, report, cache)
        data._stored = stored
        return data

    @property
    def source_vocabulary(self) -> TextVocabulary:
        """The vocabulary of the sources."""
        return self._vocabularies[0]

    @property
    def target_vocabulary(self) -> TextVocabulary:
        """The vocabulary of the references and predictions."""
        return self._vocabularies[1]

    @property
    def num_source_tokens(self) -> int:
        """How many tokens the actor may read, end and unknown token counted."""
        return len(self.source_vocabulary)

    @property
    def num_target_tokens(self) -> int:
        """How many tokens the actor may write, end and unknown token counted."""
        return len(self.target_vocabulary)

    @property
    def unknown(self) -> int | None:
        """The number of the unknown token on the target side."""
        return self.target_vocabulary.unknown

    @property
    def lowercase(self) -> bool:
        """Whether the target side is without case."""
        return self.settings.target_tokens.lowercase

    def conditions(self, split: str) -> list[str]:
        """Return what of the data changes a score, for its signature."""
        tokens = self.settings.target_tokens
        unknown = [] if tokens.kind == "subwords" else [f"unknown:U+{ord(UNKNOWN_WORD):04X}"]
        described = f"tokens:{tokens.kind}{':lowercase' * tokens.lowercase}"
        return [f"text:{self._text_digest(split)[:8]}", described, *unknown]

    def tokens(self, numbers: Sequence[int]) -> list[str]:
        """Return target numbers as single tokens, up to the end token."""
        return self.target_vocabulary.tokens(numbers)

    def cut(self, line: str) -> list[tuple[str, slice]]:
        """Return a raw line as it is, in one piece, all of which counts; of an empty line, nothing."""
        return [(line, slice(None))] if line.strip() else []

    def join(self, line: str, pieces: Sequence[tuple[str, slice]], predictions: Sequence[str], raw: bool) -> str:
        """Return the prediction of a line's one piece; an empty line stays empty."""
        return predictions[0] if predictions else ""

    def vocabularies(self) -> dict[str, Any]:
        """Return both vocabularies in a form that JSON holds, to be stored with a model."""
        return {"source": self.source_vocabulary.to_dict(), "target": self.target_vocabulary.to_dict()}

    @cached_property
    def training_pairs(self) -> EncodedPairs:
        """The training pairs as numbers, encoded on first use unless the cache holds them."""
        pairs = self._encoded_pairs("encoding the training text, once")
        self._report(f"data.train: {len(pairs):,} pairs{_list_counts(', left out ', pairs.skipped)}")
        return pairs

    @property
    def epoch_size(self) -> int:
        """How many training pairs there are."""
        return len(self.training_pairs)

    def training_batch(self, position: int, size: int, seed: int) -> Batch:
        """Return the batch of the seeded training stream that begins after `position` examples.

        Its number is position // size; it may hold fewer than `size` pairs, see `data/bucketing.py`.
        """
        return self._buckets.batch(position, size, seed)

    def evaluation_set(self, split: str) -> EvaluationSet:
        """Return the pairs of a split in the order of the files, or an even spread over them if a size limits it."""
        pairs = self._evaluation_pairs(split)
        sources = self.source_vocabulary.encode_all([pair.source for pair in pairs])
        references = self.target_vocabulary.encode_all([pair.target for pair in pairs])
        self._report_evaluation(split, sources, references)
        return self._evaluation_set(pairs, sources, references)

    def training_sample(self, size: int) -> EvaluationSet:
        """Return pairs that are trained on, spread evenly over the files; one that is left out yields to the next."""
        trained = self.training_pairs
        places = _spread(trained.num_read, size if size < len(trained) else trained.num_read)
        pairs: list[Pair] = []
        sources: list[list[int]] = []
        references: list[list[int]] = []
        for place, pair in enumerate(self._read_training("choosing training pairs to judge on")):
            if len(pairs) == len(places):
                break
            if place < places[len(pairs)]:
                continue
            source, reference = (
                vocabulary.encode_all([side])[0]
                for vocabulary, side in zip(self._vocabularies, (pair.source, pair.target), strict=True)
            )
            if self._pair_filter.reason(len(source), len(reference)) is None:
                pairs.append(pair)
                sources.append(source)
                references.append(reference)
        return self._evaluation_set(pairs, sources, references)

    def first_examples(self, size: int) -> list[tuple[str, tuple[str, ...]]]:
        """Return the first pairs of valid whose reference is not empty."""
        pairs = read_pairs(self.settings.valid, "data.valid")
        return list(islice(((pair.source, pair.targets) for pair in pairs if pair.target.strip()), size))

    def fingerprint(self) -> str:
        """Return a short hash of the training and validation text, by which a resumed run knows its data."""
        named_files(self.settings.valid, "data.valid")  # a fault here is better told before minutes of counting
        train = key_of(
            [
                self.training_pairs.text_digest,
                [vocabulary_digest(vocabulary) for vocabulary in self._vocabularies],
                self.settings.maximum_length,
                self.settings.maximum_ratio,
            ]
        )
        return f"{train[:16]}-{self._text_digest('valid')}"

    def _text_digest(self, split: str) -> str:
        digest = hashlib.blake2b(digest_size=8)
        for pair in self._evaluation_pairs(split):
            digest.update(pair.fingerprint().encode())
        return digest.hexdigest()

    def texts(self, tokens: torch.Tensor) -> list[str]:
        """Return rows of target numbers as readable text, each cut at its end token."""
        return [self.decode(row) for row in tokens.tolist()]

    def decode(self, numbers: Sequence[int]) -> str:
        """Return target numbers as readable text, up to the end token."""
        return self.target_vocabulary.decode(numbers)

    def tokenised_lines(self, lines: Sequence[str]) -> list[str]:
        """Return raw target lines as words between spaces, as scores of tokenised text take references."""
        return [" ".join(self.target_vocabulary.words(line)) for line in lines]

    def encode_lines(self, lines: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return raw source lines as padded numbers and their mask; an empty line is an end token alone."""
        return pad(self.source_vocabulary.encode_all(lines))

    @cached_property
    def _vocabularies(self) -> tuple[TextVocabulary, TextVocabulary]:
        stored = self._stored if self._stored is not None else self._learnt_vocabularies()
        return vocabulary_from_dict(stored["source"]), vocabulary_from_dict(stored["target"])

    def _learnt_vocabularies(self) -> dict[str, Any]:
        """Return the vocabularies of the training text from the cache, or learn and cache them."""
        tokens = {"source": self.settings.source_tokens, "target": self.settings.target_tokens}
        described = {side: chosen.model_dump(mode="json") for side, chosen in tokens.items()}
        path = self._cache_folder() / f"vocabularies-{key_of([RULES_VERSION, self._signatures, described])}.json"
        try:
            cached: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if cached.pop("digest") == key_of(cached):
                return cached
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        learnt: dict[str, Any] = {}
        for side, chosen in tokens.items():
            pairs = self._read_training(f"counting the {chosen.kind} of the {side}s, once")
            lines: Iterator[str] = (getattr(pair, side) for pair in pairs)
            vocabulary = learn_vocabulary(lines, chosen, self._report)
            self._report(f"data.{side}_tokens: {len(vocabulary):,} tokens in the vocabulary")
            learnt[side] = vocabulary.to_dict()
        write_atomically(path, json.dumps(learnt | {"digest": key_of(learnt)}))
        return learnt

    @cached_property
    def _signatures(self) -> list[dict[str, Any]]:
        signatures = []
        for path, setting in named_files(self.settings.train, "data.train"):
            try:
                signatures.append(file_signature(path) | {"setting": setting})
            except OSError as error:
                raise UserError(f"{setting}: cannot read {path}: {error.strerror or error}") from None
        return signatures

    @cached_property
    def _buckets(self) -> Buckets:
        num_tokens = (len(self.source_vocabulary), len(self.target_vocabulary))
        texts = RawTexts(
            torch.arange(0),
            lambda rows: [source for source, _ in self._raw_pairs.read_texts(rows)],
            lambda rows: [targets for _, targets in self._raw_pairs.read_texts(rows)],
            self.decode,
            self.target_vocabulary.encode_all if self.training_pairs.num_references > 1 else None,
        )
        return Buckets(self.training_pairs, num_tokens, texts)

    @cached_property
    def _raw_pairs(self) -> EncodedPairs:
        """The same pairs with the raw texts; most scores need none, so they are stored when one asks for them."""
        return self._encoded_pairs("storing the raw pairs of the training text, once", with_texts=True)

    def _encoded_pairs(self, activity: str, with_texts: bool = False) -> EncodedPairs:
        return encoded_pairs(
            self._cache_folder(),
            self._signatures,
            self._vocabularies,
            self._pair_filter,
            lambda: self._read_training(activity),
            with_texts,
        )

    @property
    def _pair_filter(self) -> PairFilter:
        return PairFilter(self.settings.maximum_length, self.settings.maximum_ratio)

    def _cache_folder(self) -> Path:
        return self._cache if self._cache is not None else default_cache_directory()

    def _read_training(self, activity: str) -> Iterator[Pair]:
        return with_progress(read_pairs(self.settings.train, "data.train"), self._report, activity)

    def _evaluation_pairs(self, split: str) -> list[Pair]:
        """Return the pairs to judge on. No reference may be empty; of the training text, such pairs are not used."""
        if split not in self._evaluated:
            files: PairFiles = getattr(self.settings, split)
            pairs = []
            num_empty = 0
            for pair in read_pairs(files, f"data.{split}"):
                if all(target.strip() for target in pair.targets):
                    pairs.append(pair)
                elif split != "train":
                    place = f"{pair.path}:{pair.line}"
                    raise UserError(f"data.{split}: {place}: the reference is empty; remove the pair")
                else:
                    num_empty += 1
            if num_empty:
                self._report(f"data.{split}: left out {num_empty:,} with an empty reference")
            limit = {"valid": self.settings.valid_size, "test": self.settings.test_size}.get(split)
            if limit is not None and limit < len(pairs):
                pairs = [pairs[place] for place in _spread(len(pairs), limit)]
            self._evaluated[split] = pairs
        return self._evaluated[split]

    def _evaluation_set(
        self, pairs: list[Pair], sources: list[list[int]], references: list[list[int]]
    ) -> EvaluationSet:
        read, targets = [pair.source for pair in pairs], [pair.targets for pair in pairs]
        texts = RawTexts.of(read, targets, self.decode, self.target_vocabulary.encode_all)
        batches = [
            Batch(
                *pad(sources[first:last]),
                *pad(references[first:last]),
                texts.select(torch.arange(first, last, device="cpu")),
            )
            for first, last in _cut(sources, references)
        ]
        further = [pair.further for pair in pairs]
        return EvaluationSet(batches, read, [pair.target for pair in pairs], further if any(further) else None)

    def _report_evaluation(self, split: str, sources: list[list[int]], references: list[list[int]]) -> None:
        longest = self.settings.maximum_length
        lengths = [(len(source), len(reference)) for source, reference in zip(sources, references, strict=True)]
        counts = {
            "with an empty source": sum(source == 0 for source, _ in lengths),
            f"longer than {longest} tokens": sum(max(pair) > longest for pair in lengths),
        }
        self._report(f"data.{split}: {len(lengths):,} pairs{_list_counts(', all kept: ', counts)}")


def _list_counts(introduction: str, counts: dict[str, int]) -> str:
    """Return `introduction`12 of this, 3 of that; nothing if nothing was counted."""
    parts = [f"{count:,} {name}" for name, count in counts.items() if count > 0]
    return introduction + ", ".join(parts) if parts else ""


def _spread(total: int, size: int) -> list[int]:
    """Return so many places, spread evenly from the first to the last of all."""
    places: list[int] = np.linspace(0, total - 1, size).round().astype(int).tolist()
    return places


def _cut(sources: list[list[int]], references: list[list[int]]) -> Iterator[tuple[int, int]]:
    """Yield where batches begin and end: so many pairs, or fewer if long ones would make the padded tensors large."""
    first, width = 0, 0
    for place, (source, reference) in enumerate(zip(sources, references, strict=True)):
        wider = max(width, len(source) + 1, len(reference) + 1)
        size = place - first + 1
        if size > 1 and (size > EVALUATION_BATCH or size * wider > EVALUATION_PLACES):
            yield first, place
            first, wider = place, max(len(source), len(reference)) + 1
        width = wider
    if sources:
        yield first, len(sources)
