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

from seqcritic.scores.score import Array, in_lower_case

NEVER = 10_000  # a distance beyond any other, small enough for 16 bits


def distance_table(predictions: Tensor, references: Tensor) -> Tensor:
    """Return D [B, T + 1, U + 1] of all prefixes of predictions [B, T] and of references [B, U]."""
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
    return torch.stack(rows, dim=1)


def prefix_distances(predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
    """Return [B, T + 1] edit distances of all prefixes of predictions [B, T] to the whole references [B, U].

    The references are cut at reference_lengths [B]; the predictions are not cut.
    """
    table = distance_table(predictions, references)
    columns = reference_lengths[:, None, None].expand(-1, table.shape[1], 1)
    return table.gather(2, columns)[:, :, 0]


def extended_distances(predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
    """Return [B, T, U + 1] distances of the prefixes Ŷ_1..t-1 with one token more; see ForesightScore.

    The new token stands against nothing, against y_j or against a gap after y_1..j, and what is left of the reference
    against nothing: the least of D[0] + |Y| + 1, D[j-1] + [it is not y_j] + |Y| − j and D[j] + 1 + |Y| − j.
    """
    places = torch.arange(references.shape[1], dtype=torch.int16, device=references.device)
    counted = places < reference_lengths[:, None]  # [B, U]
    left = torch.where(counted, reference_lengths[:, None].to(torch.int16) - 1 - places, NEVER)
    rows = distance_table(predictions[:, :-1], references)  # [B, T, U + 1]
    gaps = (rows[:, :, 1:] + 1 + left[:, None]).amin(dim=2)
    gaps = torch.minimum(gaps, rows[:, :, 0] + 1 + reference_lengths[:, None].to(torch.int16))
    before = rows[:, :, :-1] + left[:, None]  # [B, T, U], of the token against y_j, were it right
    wrong = before.amin(dim=2, keepdim=True) + 1
    first = (references[:, :, None] == references[:, None, :]).int().argmax(dim=2)  # [B, U], of the same token
    first = first[:, None].expand_as(before)
    right = torch.full_like(before, NEVER).scatter_reduce(2, first, before, "amin").gather(2, first)
    against = torch.cat([torch.minimum(right, wrong), wrong], dim=2)  # [B, T, U + 1]
    return torch.minimum(against, gaps[:, :, None])


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
        return self._score(held, reference_lengths[:, None])

    def outlooks(self, predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R [B, T, U + 1] of the prefixes with one token more: what is missing is wrong already."""
        distances = extended_distances(predictions, references, reference_lengths)
        return self._score(distances, reference_lengths[:, None, None])

    def _score(self, distances: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R of distances to references of so many tokens."""
        scores = (reference_lengths - distances).to(torch.get_default_dtype())
        return scores / reference_lengths.clamp(min=1) if self.normalise else scores


class CharacterErrorRate:
    """CER = Σ distances / Σ reference lengths, in percent, by rapidfuzz.

    `capped` limits a sentence's error to 1; `lowercase` leaves case out of the comparison.
    """

    name = "CER"
    lower_is_better = True

    def __init__(self, capped: bool = False, lowercase: bool = False) -> None:
        self.capped = capped
        self.lowercase = lowercase

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's distance and its reference's length."""
        if self.lowercase:
            predictions, references = in_lower_case(predictions), in_lower_case(references)
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
        """Return the name, whether errors are capped, whether case was left out, and the library's version."""
        case = ["case:lc"] if self.lowercase else []
        return [f"score:CER{':capped' if self.capped else ''}", *case, f"rapidfuzz:{version('rapidfuzz')}"]
