"""Edit distance of every prefix, for a whole batch at once; and the character error rate of a corpus.

One row of the Levenshtein table a token of the prediction: D_i[j] is the distance of its first i tokens to the
first j of the reference. Within a row the only chain is D_i[j] = min(D_i[j], D_i[j-1] + 1), which a running minimum
of D_i[j] − j resolves, so the only loop is over the steps of the longest prediction.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from seqcritic.scores.score import Array


def prefix_distances(predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
    """Return [B, T + 1] edit distances of all prefixes of predictions [B, T] to the whole references [B, U].

    The references are cut at reference_lengths [B]; the predictions are not cut.
    """
    num_examples, num_steps = predictions.shape
    width = references.shape[1]
    # Small exact integers: 16 bits move half the memory of 32.
    places = torch.arange(width + 1, dtype=torch.int16, device=predictions.device)
    row = places.expand(num_examples, width + 1)
    mismatch = (predictions[:, :, None] != references[:, None, :]).to(torch.int16)  # [B, T, U]
    rows = [row]
    for step in range(num_steps):
        candidate = torch.minimum(row[:, 1:] + 1, row[:, :-1] + mismatch[:, step])
        first = torch.full_like(row[:, :1], step + 1)
        row = torch.cummin(torch.cat([first, candidate], dim=1) - places, dim=1).values + places
        rows.append(row)
    table = torch.stack(rows, dim=1)  # [B, T + 1, U + 1]
    columns = reference_lengths[:, None, None].expand(-1, num_steps + 1, 1)
    return table.gather(2, columns)[:, :, 0]


class EditDistanceScore:
    """R(Ŷ) = |Y| − d(Ŷ, Y), or with `normalise` the same over |Y|: one minus the paper's per-sentence ratio.

    The authors' published runs used the first; the paper defines the second (as −d/|Y|: a constant apart, which
    makes the score of the empty prediction 0 and changes no gradient).
    """

    def __init__(self, normalise: bool) -> None:
        self.normalise = normalise

    def prefix_scores(
        self, predictions: Tensor, prediction_lengths: Tensor, references: Tensor, reference_lengths: Tensor
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        distances = prefix_distances(predictions, references, reference_lengths)
        steps = torch.arange(distances.shape[1], device=distances.device)
        held = distances.gather(1, torch.minimum(steps, prediction_lengths[:, None]))
        scores = (reference_lengths[:, None] - held).to(torch.get_default_dtype())
        return scores / reference_lengths.clamp(min=1)[:, None] if self.normalise else scores


class CharacterErrorRate:
    """CER = Σ distances / Σ reference lengths, in percent, by rapidfuzz; `capped` limits a sentence's error to 1."""

    name = "CER"
    lower_is_better = True

    def __init__(self, capped: bool = False) -> None:
        self.capped = capped

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's distance and its reference's length."""
        pairs = zip(predictions, references, strict=True)
        distances = np.array([Levenshtein.distance(prediction, reference) for prediction, reference in pairs])
        lengths = np.array([len(reference) for reference in references])
        if self.capped:
            distances = np.minimum(distances, lengths)
        return np.stack([distances, lengths], axis=1).astype(np.float64)

    def of_totals(self, totals: Array) -> Array:
        """Return 100 Σ distances / Σ lengths."""
        scores: Array = 100 * totals[..., 0] / totals[..., 1]
        return scores

    def signature(self) -> list[str]:
        """Return the name, whether errors are capped, and the library's version."""
        return [f"score:CER{':capped' if self.capped else ''}", f"rapidfuzz:{version('rapidfuzz')}"]
