"""Scores that compare texts: as few as will do, each different pair once.

Shapes: B examples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from seqcritic.contracts.score import References, Scorable, Score, all_of


class Compared(NamedTuple):
    """A prediction with all of its references, and its source where the score reads sources."""

    prediction: str
    references: tuple[str, ...]
    source: str | None = None


def as_compared(
    predictions: Sequence[str],
    references: Sequence[References],
    lowercase: bool,
    sources: Sequence[str] | None = None,
) -> list[Compared]:
    """Pair each prediction with its references and source; all but sources in lower case if case is left out."""
    read = sources if sources is not None else [None] * len(predictions)
    rows = [
        Compared(prediction, all_of(own), source)
        for prediction, own, source in zip(predictions, references, read, strict=True)
    ]
    if not lowercase:
        return rows
    return [
        Compared(row.prediction.lower(), tuple(text.lower() for text in row.references), row.source) for row in rows
    ]


class TextScore(Score):
    """R(Ŷ) = v(Ŷ) − v(nothing) of a value v of texts, times |Y| in tokens of the first reference if `times_length`."""

    unit = "text"
    times_length: ClassVar[bool] = False
    counts_errors: ClassVar[bool] = False
    """Whether v is a number of errors, negated, so that nothing has as many as there is to say."""
    reads_sources: bool = False
    lowercase: bool = False

    @abstractmethod
    def values(self, rows: Sequence[Compared]) -> list[float]:
        """v of each row; larger is better."""

    def score(self, batch: Scorable) -> Tensor:
        """R(Ŷ) [B]; what stands more than once in the batch is compared once."""
        rows = self._rows(batch)
        # What nothing is worth is subtracted, so that the empty prediction scores 0, as every score's does.
        empty = [row._replace(prediction="") for row in rows]
        # A dict keeps the order, where a set of texts has another in every process: a function sees the same lists.
        different = list(dict.fromkeys(each for pair in zip(empty, rows, strict=True) for each in pair))
        known = dict(zip(different, self.values(different), strict=True))
        gains = [known[row] - known[nothing] for row, nothing in zip(rows, empty, strict=True)]
        scores = torch.tensor(gains, dtype=torch.float64, device=batch.predictions.device)
        if self.times_length:
            scores = scores * batch.reference_lengths[:, 0]
        return scores.to(torch.get_default_dtype())

    def reward_unit(self, batch: Scorable) -> Tensor:
        """Return |Y| [B] in tokens where R is times |Y|, the errors of nothing where errors are counted, else 1."""
        if self.times_length:
            return batch.reference_lengths[:, 0].clamp(min=1).double()
        if not self.counts_errors:
            return super().reward_unit(batch)
        # Of an empty reference nothing has no errors; sums divide by this, so that it is at least 1.
        errors = self.values([row._replace(prediction="") for row in self._rows(batch)])
        return torch.tensor([max(-each, 1.0) for each in errors], dtype=torch.float64)

    def _rows(self, batch: Scorable) -> list[Compared]:
        sources = batch.source_texts() if self.reads_sources else None
        return as_compared(batch.prediction_texts(), batch.reference_texts(), self.lowercase, sources)
