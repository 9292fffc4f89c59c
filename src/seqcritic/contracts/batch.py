"""A batch of pairs (X, Y) as padded ids, and a set of such batches to be evaluated on.

Shapes: B examples, S source tokens or frames, F features, T reference tokens, R references of an example.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.score import References, all_of
from seqcritic.errors import UserError

if TYPE_CHECKING:
    from seqcritic.contracts.codec import Codec

Text = TypeVar("Text")
EVALUATION_BATCH = 256
EVALUATION_POSITIONS = 1 << 14  # of a padded tensor: 256 rows of 64 tokens
FEATURE_BATCH = 16  # sources that are features: half a minute of sound has a quarter of a million numbers
ENDS_AND_PADS = SpecialTokens(end=(0,), padding=0)
"""One id that ends an answer and also pads, as our own vocabularies have it."""


@dataclass(frozen=True)
class RawTexts:
    """The examples as they stand in the data, unknown words included, and predictions as people read them.

    Texts are read only when a score asks for them; `rows` [B] are what the readers find them by.
    """

    rows: Tensor  # [B] int64, on the CPU
    read_sources: Callable[[list[int]], list[str]]
    read_references: Callable[[list[int]], list[tuple[str, ...]]]
    decode: Callable[[list[int]], str]  # ids of the target side, without the end token
    encode: Callable[[list[str]], list[list[int]]] | None = None
    """Makes ids of references beyond the first, where any example has such; None: no example has."""

    @staticmethod
    def of(
        sources: list[str],
        references: list[tuple[str, ...]],
        decode: Callable[[list[int]], str],
        encode: Callable[[list[str]], list[list[int]]] | None = None,
    ) -> RawTexts:
        """Return texts that are at hand."""
        return RawTexts(
            # On the CPU whatever torch's default device is: rows are read as Python's numbers.
            torch.arange(len(sources), device="cpu"),
            lambda rows: [sources[row] for row in rows],
            lambda rows: [references[row] for row in rows],
            decode,
            # None spares `all_references` its work where no example has a second one.
            encode if any(len(own) > 1 for own in references) else None,
        )

    def sources(self) -> list[str]:
        """Return the B sources."""
        return self._read(self.read_sources)

    def references(self) -> list[tuple[str, ...]]:
        """Return all references of each of the B examples; the first is the one that is learnt from."""
        return self._read(self.read_references)

    def _read(self, read: Callable[[list[int]], list[Text]]) -> list[Text]:
        """Return the texts of the rows; each different row is read once."""
        # Repeated batches name an example once for each of its samples, and reading may mean a file.
        different, indices = torch.unique(self.rows, return_inverse=True)
        found = read(different.tolist())
        return [found[index] for index in indices.tolist()]

    def select(self, rows: Tensor) -> RawTexts:
        """Return those of some examples."""
        # Rows or a mask from the model's device; the texts' own stay on the CPU.
        return replace(self, rows=self.rows[rows.cpu()])


@dataclass(frozen=True)
class Batch:
    """Padded sources and references; a mask is True on tokens up to and including the end token."""

    sources: Tensor  # [B, S] int64, or features [B, S, F]
    source_mask: Tensor  # [B, S] bool
    references: Tensor  # [B, T] int64
    reference_mask: Tensor  # [B, T] bool
    texts: RawTexts | None = None  # a batch without them can be scored by tokens only

    @classmethod
    def of(cls, codec: Codec, sources: Sequence[str], references: Sequence[References]) -> Batch:
        """Return a batch of texts; each source has one reference, or several, of which the first is learnt from."""
        all_references = _paired(sources, references)
        # The networks learn from the first alone; the others are encoded where a score asks for them.
        encoded = codec.encode_references([own[0] for own in all_references])
        texts = RawTexts.of(list(sources), all_references, codec.decode, codec.encode_references)
        return cls(*codec.encode_sources(sources), *pad(encoded, codec.special), texts)

    def __len__(self) -> int:
        return self.sources.shape[0]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return self._change(lambda field: field.to(device), self.texts)

    def part(self, first: int, last: int) -> Batch:
        """Return the examples `first` up to, without, `last`, padded no longer than their longest."""
        sources, source_mask, references, reference_mask = (field[first:last] for field in self._fields())
        # Masks are True from the beginning on, so that the longest row's sum is the width that is needed.
        width, reference_width = int(source_mask.sum(dim=1).max()), int(reference_mask.sum(dim=1).max())
        return Batch(
            sources[:, :width],
            source_mask[:, :width],
            references[:, :reference_width],
            reference_mask[:, :reference_width],
            self._raw(torch.arange(first, min(last, len(self)), device="cpu")),
        )

    def all_references(self, lengths: Tensor, special: SpecialTokens = ENDS_AND_PADS) -> tuple[Tensor, Tensor]:
        """Return all references as ids [B, R, T] and their lengths [B, R]; `lengths` [B] are those of the first ones.

        Where an example has fewer than others its first reference stands again.
        """
        if self.texts is None or self.texts.encode is None:
            return self.references[:, None], lengths[:, None]
        firsts = zip(self.references.tolist(), lengths.tolist(), strict=True)
        rows = [
            [first[:length], *self.texts.encode(list(own[1:]))]
            for (first, length), own in zip(firsts, self.texts.references(), strict=True)
        ]
        most = max(len(row) for row in rows)
        rows = [row + [row[0]] * (most - len(row)) for row in rows]
        tokens, mask = pad([reference for row in rows for reference in row], special)  # [B · R, T]
        return tokens.view(len(rows), most, -1), (mask.sum(dim=1) - 1).view(len(rows), most)  # without ends

    def _change(self, change: Callable[[Tensor], Tensor], texts: RawTexts | None) -> Batch:
        sources, source_mask, references, reference_mask = (change(field) for field in self._fields())
        return Batch(sources, source_mask, references, reference_mask, texts)

    def _raw(self, rows: Tensor) -> RawTexts | None:
        return None if self.texts is None else self.texts.select(rows)

    def _fields(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.sources, self.source_mask, self.references, self.reference_mask

    def repeat(self, times: int) -> Batch:
        """Return the batch with every example standing `times` times in a row."""
        if times == 1:
            return self
        rows = torch.arange(len(self), device="cpu").repeat_interleave(times)
        return self._change(lambda field: field.repeat_interleave(times, dim=0), self._raw(rows))

    def select(self, rows: Tensor) -> Batch:
        """Return some examples."""
        return self._change(lambda field: field[rows], self._raw(rows))


def pad(sequences: Sequence[Sequence[int]], special: SpecialTokens = ENDS_AND_PADS) -> tuple[Tensor, Tensor]:
    """Return the sequences, each closed by an end token, as one padded tensor and its mask."""
    width = max(len(sequence) for sequence in sequences) + 1  # and the end
    tokens = torch.full((len(sequences), width), special.padding, dtype=torch.int64)
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.int64)
    tokens[torch.arange(len(sequences)), lengths] = special.end[0]
    return tokens, torch.arange(width) <= lengths[:, None]  # [B, T]; ≤: the end counts


def pad_rows(rows: Sequence[Tensor], padding: int = 0) -> tuple[Tensor, Tensor]:
    """Return rows of ids [S] or of features [S, F], their ends included, as one padded tensor and its mask."""
    lengths = torch.tensor([len(row) for row in rows])
    padded = pad_sequence(list(rows), batch_first=True, padding_value=padding)
    return padded, torch.arange(padded.shape[1]) < lengths[:, None]


def unpadded(tokens: Tensor, mask: Tensor) -> list[Tensor]:
    """Return the rows of a padded tensor up to where their masks end."""
    return [row[: int(length)] for row, length in zip(tokens, mask.sum(dim=1), strict=True)]


@dataclass(frozen=True)
class EvaluationSet:
    """Fixed pairs to evaluate a model on: texts for the report and batches for the model, in the same order."""

    batches: Sequence[Batch]
    sources: list[str]
    references: list[str]  # the first of each
    further_references: list[tuple[str, ...]] | None = None  # where any pair has more than one

    @classmethod
    def of(cls, codec: Codec, sources: Sequence[str], references: Sequence[References]) -> EvaluationSet:
        """Return texts as a set, in their order; each source has one reference, or several."""
        given, all_references = list(sources), _paired(sources, references)
        texts = RawTexts.of(given, all_references, codec.decode, codec.encode_references)
        firsts = codec.encode_references([own[0] for own in all_references])
        if codec.num_source_tokens == 0:  # features, which are not read before a batch is asked for
            return cls._of_texts(FeatureBatches(codec, given, firsts, texts), given, all_references)
        rows: list[Tensor] = []
        # In parts: padded to the longest of all, one tensor of the whole set could outgrow the memory.
        for first in range(0, len(given), EVALUATION_BATCH):
            rows += unpadded(*codec.encode_sources(given[first : first + EVALUATION_BATCH]))
        batches = [
            Batch(
                *pad_rows(rows[first:last]),  # beyond the mask nothing is read; 0 is an id and a feature everywhere
                *pad(firsts[first:last], codec.special),
                texts.select(torch.arange(first, last, device="cpu")),
            )
            # `row` has its end already, `own` not yet.
            for first, last in _cut([max(len(row), len(own) + 1) for row, own in zip(rows, firsts, strict=True)])
        ]
        return cls._of_texts(batches, given, all_references)

    @classmethod
    def of_batch(cls, batch: Batch) -> EvaluationSet:
        """Return one batch that has its texts as a set."""
        assert batch.texts is not None, "a batch of tokens alone cannot be evaluated"
        return cls._of_texts([batch], batch.texts.sources(), batch.texts.references())

    @classmethod
    def _of_texts(
        cls, batches: Sequence[Batch], sources: list[str], references: list[tuple[str, ...]]
    ) -> EvaluationSet:
        further = [own[1:] for own in references]
        return cls(batches, sources, [own[0] for own in references], further if any(further) else None)

    def __len__(self) -> int:
        return len(self.sources)

    def text_digest(self) -> str:
        """Return a short hash of all sources and references."""
        return digest_texts(zip(self.sources, self.all_references, strict=True))

    @property
    def num_references(self) -> str:
        """How many references each pair has, as signatures say it: a number, or `var` where they have not the same."""
        counts = {len(own) for own in self.all_references}
        return str(*counts) if len(counts) == 1 else "var"

    @property
    def all_references(self) -> list[tuple[str, ...]]:
        """All references of each pair."""
        if self.further_references is None:
            return [(reference,) for reference in self.references]
        return [(first, *more) for first, more in zip(self.references, self.further_references, strict=True)]


class FeatureBatches(Sequence[Batch]):
    """Batches whose features are asked for when a batch is: all at once they may be larger than the memory."""

    def __init__(self, codec: Codec, sources: list[str], references: list[list[int]], texts: RawTexts) -> None:
        self._codec, self._sources, self._references, self._texts = codec, sources, references, texts

    def __len__(self) -> int:
        return -(-len(self._sources) // FEATURE_BATCH)  # rounded up

    @overload
    def __getitem__(self, place: int) -> Batch: ...
    @overload
    def __getitem__(self, place: slice) -> list[Batch]: ...
    def __getitem__(self, place: int | slice) -> Batch | list[Batch]:
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        # By a range, which knows negative places and raises the IndexError at which iteration ends.
        first = range(len(self))[place] * FEATURE_BATCH
        last = min(first + FEATURE_BATCH, len(self._sources))
        return Batch(
            *self._codec.encode_sources(self._sources[first:last]),
            *pad(self._references[first:last], self._codec.special),
            self._texts.select(torch.arange(first, last, device="cpu")),
        )


def text_record(source: str, references: Sequence[str]) -> str:
    """Return what a digest of text reads of a pair."""
    # Separators of ASCII, which text does not use: no two different pairs read the same.
    return f"{source}\x1e{chr(0x1D).join(references)}\x1f"


def digest_texts(pairs: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a short hash of sources with all their references."""
    digest = hashlib.blake2b(digest_size=8)
    for source, references in pairs:
        digest.update(text_record(source, references).encode())
    return digest.hexdigest()


def _paired(sources: Sequence[str], references: Sequence[References]) -> list[tuple[str, ...]]:
    """Return all references of every source."""
    found = [all_of(own) for own in references]
    if len(found) != len(sources):
        raise UserError(f"{len(sources)} sources and {len(found)} references; every source needs its own")
    if not all(found):
        raise UserError(f"example {found.index(())} has no reference; give every source at least one")
    return found


def _cut(widths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where batches begin and end: so many pairs, or fewer if long ones would make the padded tensors large."""
    first, width = 0, 0
    for index, own in enumerate(widths):
        wider = max(width, own)
        size = index - first + 1
        # A pair that is too long by itself is a batch of its own.
        if size > 1 and (size > EVALUATION_BATCH or size * wider > EVALUATION_POSITIONS):
            yield first, index
            # This pair made it too large, and begins the next.
            first, wider = index, own
        width = wider
    if widths:
        yield first, len(widths)
