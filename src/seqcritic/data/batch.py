"""A batch of pairs (X, Y) as padded token numbers.

Shapes: B examples, S source tokens, T reference tokens; both sides carry their end token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.data.vocabulary import END


@dataclass(frozen=True)
class Batch:
    """Padded sources and references; a mask is True on tokens up to and including the end token."""

    sources: Tensor  # [B, S] int64
    source_mask: Tensor  # [B, S] bool
    references: Tensor  # [B, T] int64
    reference_mask: Tensor  # [B, T] bool

    def __len__(self) -> int:
        return self.sources.shape[0]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(*(field.to(device) for field in self._fields()))

    def part(self, first: int, last: int) -> Batch:
        """Return the examples `first` up to, without, `last`, padded no longer than their longest."""
        sources, source_mask, references, reference_mask = (field[first:last] for field in self._fields())
        width, reference_width = int(source_mask.sum(dim=1).max()), int(reference_mask.sum(dim=1).max())
        return Batch(
            sources[:, :width],
            source_mask[:, :width],
            references[:, :reference_width],
            reference_mask[:, :reference_width],
        )

    def _fields(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.sources, self.source_mask, self.references, self.reference_mask

    def repeat(self, times: int) -> Batch:
        """Return the batch with every example standing `times` times in a row."""
        if times == 1:
            return self
        return Batch(*(field.repeat_interleave(times, dim=0) for field in self._fields()))

    def select(self, rows: Tensor) -> Batch:
        """Return some examples."""
        return Batch(*(field[rows] for field in self._fields()))


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
