"""Pairs of texts: batches of (source, reference) for training, sets for evaluation; here those of files.

Shared by all pairs, wherever they come from, are the vocabularies, the filter, the order of training and the sets.
"""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqcritic.contracts.batch import Batch, EvaluationSet, RawTexts, digest_texts
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.task import Task
from seqcritic.data.bucketing import Buckets
from seqcritic.data.codec_sides import has_features, sides_of, sources_end
from seqcritic.data.codecs.text import TextCodec
from seqcritic.data.held_out import held_out_for
from seqcritic.data.parallel import Pair, clean_pair, locate_sound, named_files, read_pairs, read_rows, refuse_idle
from seqcritic.data.tables import open_dataset
from seqcritic.data.token_cache import (
    EncodedPairs,
    PairFilter,
    encoded_pairs,
    file_signature,
    key_of,
    write_cached,
)
from seqcritic.data.tokens import Encoder, learn_vocabulary, vocabulary_digest
from seqcritic.data.words import RULES_VERSION, UNKNOWN_WORD
from seqcritic.errors import UserError
from seqcritic.files import default_cache_directory
from seqcritic.progress import Bar, log
from seqcritic.settings.data import ColumnSettings, PairFiles, TranslationSettings


class PairsTask(Task):
    """Pairs of texts in the tokens, and by the filter, of the settings; read when they are asked for."""

    def __init__(self, settings: TranslationSettings, codec: Codec | None, level: int) -> None:
        """`codec` is that of a model; without it, vocabularies are learnt from the training text.

        What is read is logged with `level`.
        """
        self.settings = settings
        self.maximum_length = settings.maximum_length
        self._level = level
        self._evaluated: dict[str, list[Pair]] = {}
        self._has_features = codec is not None and has_features(codec)
        if codec is not None:
            self.codec = codec
        if self._has_features and settings.maximum_ratio is not None:
            raise UserError(f"{self._name('maximum_ratio')}: sources are sounds, which have no tokens; leave it null")

    @cached_property
    def codec(self) -> Codec:  # type: ignore[override]
        """The vocabularies of both sides, or the codec that a model brings along."""
        return self._learn_codec()

    def conditions(self, split: str) -> list[str]:
        """Return what of the data changes a score, for its signature."""
        if not isinstance(self.codec, TextCodec):
            return [f"text:{self._text_digest(split)[:8]}", f"tokens:{self.codec.score_options().tokens}"]
        target = self.codec.target
        unknown = [] if target.kind == "subwords" else [f"unknown:U+{ord(UNKNOWN_WORD):04X}"]
        described = f"tokens:{target.kind}{':lowercase' * target.lowercase}"
        return [f"text:{self._text_digest(split)[:8]}", described, *unknown]

    @abstractmethod
    def _name(self, setting: str) -> str:
        """Return what the user calls a setting or a split, to begin a message with."""

    @abstractmethod
    def _place(self, split: str, pair: Pair) -> str:
        """Return where a pair stands."""

    @abstractmethod
    def _require(self, split: str) -> None:
        """Refuse a split that is not there."""

    @abstractmethod
    def _read(self, split: str) -> Iterator[Pair]:
        """Yield the pairs of a split in their order."""

    @abstractmethod
    def _encoded_pairs(self, activity: str, with_texts: bool = False) -> EncodedPairs:
        """Return the training pairs that the filter leaves."""

    def _learn_codec(self) -> TextCodec:
        """Return the vocabularies of the training text."""
        return self._learn_vocabularies()

    @cached_property
    def training_pairs(self) -> EncodedPairs:
        """The training pairs as ids, encoded on first use unless the cache holds them."""
        pairs = self._encoded_pairs("encoding the training text, once")
        log.log(self._level, f"{self._name('train')}: {len(pairs):,} pairs{_list_counts(', left out ', pairs.skipped)}")
        return pairs

    @property
    def epoch_size(self) -> int:  # type: ignore[override]
        """How many training pairs there are."""
        return len(self.training_pairs)

    def training_batch(self, position: int, size: int, seed: int) -> Batch:
        """Return the batch of the seeded training stream that begins after `position` examples.

        Its number is position // size; it may hold fewer than `size` pairs, see `data/bucketing.py`.
        """
        batch = self._buckets.batch(position, size, seed)
        if not self._has_features:
            return batch
        assert batch.texts is not None, "buckets of pairs have them"
        sources, mask = self.codec.encode_sources(batch.texts.sources())
        return replace(batch, sources=sources, source_mask=mask)

    def evaluation_set(self, split: str) -> EvaluationSet:
        """Return the pairs of a split in the order of the files, or an even spread over them if a size limits it."""
        found = self._as_set(self._evaluation_pairs(split))
        self._report_evaluation(split, found)
        return found

    def training_sample(self, size: int) -> EvaluationSet:
        """Return pairs that are trained on, spread evenly over the files; one that is left out yields to the next."""
        trained = self.training_pairs
        positions = _spread(trained.num_read, size if size < len(trained) else trained.num_read)
        pairs: list[Pair] = []
        for place, pair in enumerate(self._read_training("choosing training pairs to evaluate on")):
            if len(pairs) == len(positions):
                break
            if place < positions[len(pairs)]:  # not yet the next of the spread
                continue
            source, target = self._vocabularies
            [given], [wanted] = source.encode_all([pair.source]), target.encode_all([pair.target])
            if self._pair_filter.reason(len(given), len(wanted)) is None:
                pairs.append(pair)
        return self._as_set(pairs)

    def first_examples(self, size: int) -> list[tuple[str, tuple[str, ...]]]:
        """Return the first pairs of valid whose reference is not empty."""
        pairs = self._read("valid")
        return list(islice(((pair.source, pair.targets) for pair in pairs if pair.target.strip()), size))

    def fingerprint(self) -> str:
        """Return a short hash of the training and validation text, by which a resumed run knows its data."""
        for split in ("valid", "train"):  # a fault here is better told before minutes of counting
            self._require(split)
        text = self.training_pairs.text_digest  # of sounds too: their features are made here, once
        train = key_of(
            [
                self._digest(self._read("train")) if self._has_features else text,
                [vocabulary_digest(vocabulary) for vocabulary in self._vocabularies],
                self.settings.maximum_length,
                self.settings.maximum_ratio,
            ]
        )
        return f"{train[:16]}-{self._text_digest('valid')}"

    def _text_digest(self, split: str) -> str:
        return self._digest(self._evaluation_pairs(split))

    def _digest(self, pairs: Iterable[Pair]) -> str:
        if not self._has_features:
            return digest_texts((pair.source, pair.targets) for pair in pairs)
        # Sounds by name and size: wherever they are, they are the same.
        sounds = ((Path(pair.source), pair.targets) for pair in pairs)
        return digest_texts((f"{path.name}:{path.stat().st_size}", targets) for path, targets in sounds)

    @cached_property
    def _vocabularies(self) -> tuple[Encoder, Encoder]:
        return sides_of(self.codec)

    def _learn_vocabularies(self) -> TextCodec:
        """Return the vocabularies of the training text, which is read once for each side."""
        learnt = []
        for side, chosen in (("source", self.settings.source_tokens), ("target", self.settings.target_tokens)):
            pairs = self._read_training(f"counting the {chosen.kind} of the {side}s, once")
            lines: Iterator[str] = (getattr(pair, side) for pair in pairs)
            setting = self._name(f"{side}_tokens")
            vocabulary = learn_vocabulary(lines, chosen, setting)
            log.log(self._level, f"{setting}: {len(vocabulary):,} tokens in the vocabulary")
            learnt.append(vocabulary)
        return TextCodec(*learnt)

    @cached_property
    def _buckets(self) -> Buckets:
        source, target = self._vocabularies
        num_tokens = len(source), len(target)
        texts = RawTexts(
            torch.arange(0),  # each batch brings its own rows
            lambda rows: [source for source, _ in self._raw_pairs.read_texts(rows)],
            lambda rows: [targets for _, targets in self._raw_pairs.read_texts(rows)],
            self.codec.decode,
            self.codec.encode_references if self.training_pairs.num_references > 1 else None,
        )
        return Buckets(self.training_pairs, num_tokens, texts, self.codec.special, sources_end(self.codec))

    @cached_property
    def _raw_pairs(self) -> EncodedPairs:
        """The same pairs with the raw texts; most scores need none, so they are stored when one asks for them."""
        return self._encoded_pairs("storing the raw pairs of the training text, once", with_texts=True)

    @property
    def _pair_filter(self) -> PairFilter:
        return PairFilter(self.settings.maximum_length, self.settings.maximum_ratio)

    def _read_training(self, activity: str) -> Iterator[Pair]:
        """Yield the training pairs, and tell how many there have been where that takes long."""
        with Bar(activity, unit="pairs") as bar:
            yield from bar.over(self._read("train"))

    def _evaluation_pairs(self, split: str) -> list[Pair]:
        """Return the pairs to evaluate on. No reference may be empty; of the training text, such pairs are not used."""
        if split not in self._evaluated:
            pairs = []
            num_empty = 0
            for pair in self._read(split):
                if all(target.strip() for target in pair.targets):
                    pairs.append(pair)
                elif split != "train" and not getattr(self.settings.held_out, split):
                    raise UserError(f"{self._place(split, pair)}: the reference is empty; remove the pair")
                else:
                    num_empty += 1
            if num_empty:
                log.log(self._level, f"{self._name(split)}: left out {num_empty:,} with an empty reference")
            if not pairs:
                raise UserError(f"{self._name(split)}: no pairs to evaluate on; give more, or hold out a larger share")
            limit = {"valid": self.settings.valid_size, "test": self.settings.test_size}.get(split)
            if limit is not None and limit < len(pairs):
                pairs = [pairs[place] for place in _spread(len(pairs), limit)]
            self._evaluated[split] = pairs
        return self._evaluated[split]

    def _as_set(self, pairs: list[Pair]) -> EvaluationSet:
        return EvaluationSet.of(self.codec, [pair.source for pair in pairs], [pair.targets for pair in pairs])

    def _report_evaluation(self, split: str, found: EvaluationSet) -> None:
        longest = self.settings.maximum_length
        if self._has_features:
            log.log(self._level, f"{self._name(split)}: {len(found):,} pairs")
            return
        lengths = [
            (source - 1, reference - 1)  # without the end token
            for batch in found.batches
            for source, reference in zip(
                batch.source_mask.sum(dim=1).tolist(), batch.reference_mask.sum(dim=1).tolist(), strict=True
            )
        ]
        counts = {
            "with an empty source": sum(source == 0 for source, _ in lengths),
            f"longer than {longest} tokens": sum(max(pair) > longest for pair in lengths),
        }
        log.log(self._level, f"{self._name(split)}: {len(lengths):,} pairs{_list_counts(', all kept: ', counts)}")


class PairsFromFiles(PairsTask):
    """Pairs from the files that the settings name; what is learnt and encoded of them is cached."""

    def __init__(
        self,
        settings: TranslationSettings,
        cache: Path | None = None,
        codec: Codec | None = None,
        level: int = logging.DEBUG,
    ) -> None:
        super().__init__(settings, codec, level)
        self._cache = cache
        self._datasets: dict[str, Any] = {}

    def section(self) -> dict[str, Any]:
        """The section `data` of the settings that build this task again."""
        return self.settings.model_dump(mode="json")

    def _name(self, setting: str) -> str:
        """Return the setting."""
        return f"data.{setting}"

    def _place(self, split: str, pair: Pair) -> str:
        """Return where a pair stands."""
        return f"data.{split}: {pair.path}:{pair.line}"

    def _require(self, split: str) -> None:
        """Refuse a split that is not there."""
        split = "train" if self._is_held_out(split) else split  # whose pairs it is a share of
        if self._in_dataset(split):
            self._dataset(split)
        else:
            named_files(getattr(self.settings, split), self._name(split), self.settings.origin)
        if split == "train":
            refuse_idle(self._read_whole(split), self._name(split))

    def _read(self, split: str) -> Iterator[Pair]:
        """Yield the pairs of a split in their order."""
        of = "train" if self._is_held_out(split) else split
        found = self._read_whole(of)
        if of != "train" or not self._shares:
            return found
        return (pair for pair in found if held_out_for(pair.source, self._shares) == split)

    def _is_held_out(self, split: str) -> bool:
        """Tell whether a split is a share of the training pairs."""
        return split in self._shares and getattr(self.settings, split) == PairFiles()

    @property
    def _shares(self) -> dict[str, float]:
        """The shares of the training pairs that are kept apart."""
        return {split: share for split, share in self.settings.held_out if share}

    def _read_whole(self, split: str) -> Iterator[Pair]:
        """Yield the pairs of a split, held-out ones among those of train."""
        columns, name = self.settings.columns, self._name(split)
        if self._in_dataset(split):
            rows = enumerate(self._dataset(split), start=1)
            found: Iterator[Pair] = map(clean_pair, read_rows(rows, columns, f"{name}: row", ""))
        else:
            found = read_pairs(getattr(self.settings, split), name, columns, self.settings.origin)
        if not self._has_features:
            return found
        return (locate_sound(pair, self._place(split, pair)) for pair in found)

    def _in_dataset(self, split: str) -> bool:
        return self.settings.dataset is not None and getattr(self.settings, split) == PairFiles()

    def _dataset(self, split: str) -> Any:
        if split not in self._datasets:
            assert self.settings.dataset is not None
            self._datasets[split] = open_dataset(self.settings.dataset, split)
        return self._datasets[split]

    def _learn_codec(self) -> TextCodec:
        """Return the vocabularies of the training text from the cache, or learn and cache them."""
        tokens = {"source": self.settings.source_tokens, "target": self.settings.target_tokens}
        described: dict[str, Any] = {side: chosen.model_dump(mode="json") for side, chosen in tokens.items()}
        for side, chosen in tokens.items():
            if chosen.file is not None:
                described[side]["file"] = self._signature(chosen.file, f"data.{side}_tokens.file")  # more than its name
        path = self._cache_folder() / f"vocabularies-{key_of([RULES_VERSION, self._signatures, described])}.json"
        try:
            cached: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if cached.pop("digest") == key_of(cached):  # popped first: it is of the rest
                return TextCodec.from_dict(cached)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, or damaged: learnt again
            pass
        learnt = self._learn_vocabularies()
        content = learnt.content()
        write_cached(path, json.dumps(content | {"digest": key_of(content)}))
        return learnt

    @cached_property
    def _signatures(self) -> list[dict[str, Any]]:
        """What decides the pairs of the training text: its files, which columns are read, and what is kept apart."""
        signatures: list[dict[str, Any]] = [{"held_out": self._shares}] if self._shares else []
        if self._in_dataset("train"):
            dataset = self._dataset("train")
            found = {"dataset": dataset._fingerprint, "rows": len(dataset)}  # nothing public tells it
            return [*signatures, found | {"columns": self.settings.columns.model_dump()}]
        if self.settings.columns != ColumnSettings():
            signatures.append({"columns": self.settings.columns.model_dump()})
        named = named_files(self.settings.train, "data.train", self.settings.origin)
        return signatures + [self._signature(path, setting) for path, setting in named]

    def _signature(self, path: str, setting: str) -> dict[str, Any]:
        try:
            return file_signature(path) | {"setting": setting}
        except OSError as error:
            raise UserError(f"{setting}: cannot read {path}: {error.strerror or error}") from None

    def _encoded_pairs(self, activity: str, with_texts: bool = False) -> EncodedPairs:
        return encoded_pairs(
            self._cache_folder(),
            self._signatures,
            self._vocabularies,
            self._pair_filter,
            lambda: self._read_training(activity),
            with_texts,
        )

    def _cache_folder(self) -> Path:
        return self._cache if self._cache is not None else default_cache_directory()


def _list_counts(introduction: str, counts: dict[str, int]) -> str:
    """Return `introduction`12 of this, 3 of that; nothing if nothing was counted."""
    parts = [f"{count:,} {name}" for name, count in counts.items() if count > 0]
    return introduction + ", ".join(parts) if parts else ""


def _spread(total: int, size: int) -> list[int]:
    """Return so many positions, spread evenly from the first to the last of all."""
    positions: list[int] = np.linspace(0, total - 1, size).round().astype(int).tolist()
    return positions
