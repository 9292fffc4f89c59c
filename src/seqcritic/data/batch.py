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

    def repeat(self, times: int) -> Batch:
        """Return the batch with every example standing `times` times in a row."""
        if times == 1:
            return self
        return self.select(torch.arange(len(self), device=self.sources.device).repeat_interleave(times))

    def select(self, rows: Tensor) -> Batch:
        """Return some examples."""
        return Batch(self.sources[rows], self.source_mask[rows], self.references[rows], self.reference_mask[rows])


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
