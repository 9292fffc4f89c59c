"""A batch of pairs (X, Y) as padded token numbers.

Shapes: B examples, S source tokens, T reference tokens; both sides carry their end token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from seqcritic.data.vocabulary import END

Text = TypeVar("Text")


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
            torch.arange(len(sources), device="cpu"),
            lambda rows: [sources[row] for row in rows],
            lambda rows: [references[row] for row in rows],
            decode,
            encode if any(len(own) > 1 for own in references) else None,
        )

    def sources(self) -> list[str]:
        """Return the B sources."""
        return self._read(self.read_sources)

    def references(self) -> list[tuple[str, ...]]:
        """Return all references of each of the B examples; the first is the one that is learnt from."""
        return self._read(self.read_references)

    def _read(self, read: Callable[[list[int]], list[Text]]) -> list[Text]:
        """Return what stands at the rows; one that stands several times is read once."""
        different, places = torch.unique(self.rows, return_inverse=True)
        found = read(different.tolist())
        return [found[place] for place in places.tolist()]

    def select(self, rows: Tensor) -> RawTexts:
        """Return those of some examples."""
        return replace(self, rows=self.rows[rows.cpu()])


@dataclass(frozen=True)
class Batch:
    """Padded sources and references; a mask is True on tokens up to and including the end token."""

    sources: Tensor  # [B, S] int64
    source_mask: Tensor  # [B, S] bool
    references: Tensor  # [B, T] int64
    reference_mask: Tensor  # [B, T] bool
    texts: RawTexts | None = None  # a batch without them can be scored by tokens only

    def __len__(self) -> int:
        return self.sources.shape[0]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return self._change(lambda field: field.to(device), self.texts)

    def part(self, first: int, last: int) -> Batch:
        """Return the examples `first` up to, without, `last`, padded no longer than their longest."""
        sources, source_mask, references, reference_mask = (field[first:last] for field in self._fields())
        width, reference_width = int(source_mask.sum(dim=1).max()), int(reference_mask.sum(dim=1).max())
        return Batch(
            sources[:, :width],
            source_mask[:, :width],
            references[:, :reference_width],
            reference_mask[:, :reference_width],
            self._raw(torch.arange(first, min(last, len(self)), device="cpu")),
        )

    def all_references(self, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return all references as ids [B, R, U] and their lengths [B, R]; `lengths` [B] are those of the first ones.

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
        tokens, mask = pad([reference for row in rows for reference in row])
        return tokens.view(len(rows), most, -1), (mask.sum(dim=1) - 1).view(len(rows), most)

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


def pad(sequences: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Return the sequences, each closed by an end token, as one padded tensor and its mask."""
    width = max(len(sequence) for sequence in sequences) + 1
    tokens = torch.full((len(sequences), width), END, dtype=torch.int64)
    lengths = torch.tensor([len(sequence) + 1 for sequence in sequences])
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.int64)
    return tokens, torch.arange(width) < lengths[:, None]


@dataclass(frozen=True)
class EvaluationSet:
    """Fixed pairs to judge a model on: texts for the report and batches for the model, in the same order."""

    batches: list[Batch]
    sources: list[str]
    references: list[str]  # the first of each
    further_references: list[tuple[str, ...]] | None = None  # where any pair has more than one

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
