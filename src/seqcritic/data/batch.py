"""A batch of pairs (X, Y) as padded token numbers.

Shapes: B examples, S source tokens, T reference tokens; both sides carry their end token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.data.vocabulary import END


@dataclass(frozen=True)
class RawReferences:
    """The references as they stand in the data, unknown words included: what a score of texts must see.

    They are read only when a score asks for them. `rows` [B] are what `read` finds them by.
    """

    rows: Tensor  # [B] int64, on the CPU
    read: Callable[[list[int]], list[str]]

    @staticmethod
    def of(texts: list[str]) -> RawReferences:
        """Return texts that are at hand, one an example."""
        return RawReferences(torch.arange(len(texts), device="cpu"), lambda rows: [texts[row] for row in rows])

    def texts(self) -> list[str]:
        """Return the B texts; one that stands several times is read once."""
        different, places = torch.unique(self.rows, return_inverse=True)
        found = self.read(different.tolist())
        return [found[place] for place in places.tolist()]

    def select(self, rows: Tensor) -> RawReferences:
        """Return those of some examples."""
        return RawReferences(self.rows[rows.cpu()], self.read)


@dataclass(frozen=True)
class Batch:
    """Padded sources and references; a mask is True on tokens up to and including the end token."""

    sources: Tensor  # [B, S] int64
    source_mask: Tensor  # [B, S] bool
    references: Tensor  # [B, T] int64
    reference_mask: Tensor  # [B, T] bool
    raw_references: RawReferences | None = None  # a batch without them can be scored by tokens only

    def __len__(self) -> int:
        return self.sources.shape[0]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return self._change(lambda field: field.to(device), self.raw_references)

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

    def reference_texts(self) -> list[str]:
        """Return the raw texts of the references [B]."""
        assert self.raw_references is not None, "a batch that was made of tokens alone has no texts to score"
        return self.raw_references.texts()

    def _change(self, change: Callable[[Tensor], Tensor], raw_references: RawReferences | None) -> Batch:
        sources, source_mask, references, reference_mask = (change(field) for field in self._fields())
        return Batch(sources, source_mask, references, reference_mask, raw_references)

    def _raw(self, rows: Tensor) -> RawReferences | None:
        return None if self.raw_references is None else self.raw_references.select(rows)

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
    references: list[str]
