"""Edit distance of every prefix, for a whole batch at once; and the error rate of a corpus, of characters or tokens.

One row of the Levenshtein table a token of the prediction: D_i[j] is the distance of its first i tokens to the
first j of the reference. Within a row the only chain is D_i[j] = min(D_i[j], D_i[j-1] + 1), which a running minimum
of D_i[j] − j resolves, so the only loop is over the steps of the longest prediction.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from seqcritic.errors import UserError
from seqcritic.scores.score import Array, Texts, in_lower_case

NEVER = 10_000  # a distance beyond any other, small enough for 16 bits


def distance_table(predictions: Tensor, references: Tensor, unknown: int | None = None) -> Tensor:
    """Return D [B, T + 1, U + 1] of all prefixes of predictions [B, T] and of references [B, U].

    An `unknown` token is wrong in every place: it stands for different words.
    """
    num_examples, num_steps = predictions.shape
    width = references.shape[1]
    # Small exact integers: 16 bits move half the memory of 32.
    places = torch.arange(width + 1, dtype=torch.int16, device=predictions.device)
    row = places.expand(num_examples, width + 1)
    mismatches = predictions[:, :, None] != references[:, None, :]  # [B, T, U]
    if unknown is not None:
        mismatches |= (references == unknown)[:, None, :]
    mismatch = mismatches.to(torch.int16)
    rows = [row]
    for step in range(num_steps):
        candidate = torch.minimum(row[:, 1:] + 1, row[:, :-1] + mismatch[:, step])
        first = torch.full_like(row[:, :1], step + 1)
        row = torch.cummin(torch.cat([first, candidate], dim=1) - places, dim=1).values + places
        rows.append(row)
    return torch.stack(rows, dim=1)


def prefix_distances(
    predictions: Tensor, references: Tensor, reference_lengths: Tensor, unknown: int | None = None
) -> Tensor:
    """Return [B, T + 1] edit distances of all prefixes of predictions [B, T] to the whole references [B, U].

    The references are cut at reference_lengths [B]; the predictions are not cut. `unknown` tokens never match.
    """
    table = distance_table(predictions, references, unknown)
    columns = reference_lengths[:, None, None].expand(-1, table.shape[1], 1)
    return table.gather(2, columns)[:, :, 0]


def extended_distances(
    predictions: Tensor, references: Tensor, reference_lengths: Tensor, unknown: int | None = None
) -> Tensor:
    """Return [B, T, U + 1] distances of the prefixes Ŷ_1..t-1 with one token more; see ForesightScore.

    The new token stands against nothing, against y_j or against a gap after y_1..j, and what is left of the reference
    against nothing: the least of D[0] + |Y| + 1, D[j-1] + [it is not y_j] + |Y| − j and D[j] + 1 + |Y| − j.
    """
    places = torch.arange(references.shape[1], dtype=torch.int16, device=references.device)
    counted = places < reference_lengths[:, None]  # [B, U]
    left = torch.where(counted, reference_lengths[:, None].to(torch.int16) - 1 - places, NEVER)
    rows = distance_table(predictions[:, :-1], references, unknown)  # [B, T, U + 1]
    gaps = (rows[:, :, 1:] + 1 + left[:, None]).amin(dim=2)
    gaps = torch.minimum(gaps, rows[:, :, 0] + 1 + reference_lengths[:, None].to(torch.int16))
    before = rows[:, :, :-1] + left[:, None]  # [B, T, U], of the token against y_j, were it right
    wrong = before.amin(dim=2, keepdim=True) + 1
    first = (references[:, :, None] == references[:, None, :]).int().argmax(dim=2)  # [B, U], of the same token
    first = first[:, None].expand_as(before)
    right = torch.full_like(before, NEVER).scatter_reduce(2, first, before, "amin").gather(2, first)
    if unknown is not None:
        right = right.masked_fill((references == unknown)[:, None], NEVER)
    against = torch.cat([torch.minimum(right, wrong), wrong], dim=2)  # [B, T, U + 1]
    return torch.minimum(against, gaps[:, :, None])


class EditDistanceScore:
    """R(Ŷ) = |Y| − d(Ŷ, Y), or with `normalise` the same over |Y|: one minus the paper's per-sentence ratio.

    The authors' published runs used the first; the paper defines the second (as −d/|Y|: a constant apart, which
    makes the score of the empty prediction 0 and changes no gradient). `unknown` tokens never match.
    """

    def __init__(self, normalise: bool, unknown: int | None = None) -> None:
        self.normalise = normalise
        self.unknown = unknown

    def prefix_scores(
        self,
        predictions: Tensor,
        prediction_lengths: Tensor,
        references: Tensor,
        reference_lengths: Tensor,
        reference_texts: Texts | None = None,
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        distances = prefix_distances(predictions, references, reference_lengths, self.unknown)
        steps = torch.arange(distances.shape[1], device=distances.device)
        held = distances.gather(1, torch.minimum(steps, prediction_lengths[:, None]))
        return self._score(held, reference_lengths[:, None])

    def outlooks(self, predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R [B, T, U + 1] of the prefixes with one token more: what is missing is wrong already."""
        distances = extended_distances(predictions, references, reference_lengths, self.unknown)
        return self._score(distances, reference_lengths[:, None, None])

    def _score(self, distances: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R of distances to references of so many tokens."""
        scores = (reference_lengths - distances).to(torch.get_default_dtype())
        return scores / reference_lengths.clamp(min=1) if self.normalise else scores


class CharacterErrorRate:
    """CER = 100 · Σ distances / Σ reference lengths, in characters. K = 2: distance and length.

    `capped` limits a sentence's error to 1; `lowercase` leaves case out of the comparison.
    """

    name = "CER"
    unit = "character"
    lower_is_better = True

    def __init__(self, capped: bool = False, lowercase: bool = False) -> None:
        self.capped = capped
        self.lowercase = lowercase

    def statistics(self, predictions: Sequence[str], references: Sequence[str]) -> Array:
        """Return each sentence's distance and its reference's length; references that are all empty are refused."""
        if self.lowercase:
            predictions, references = in_lower_case(predictions), in_lower_case(references)
        pairs = [
            (self.split(prediction), self.split(reference))
            for prediction, reference in zip(predictions, references, strict=True)
        ]
        lengths = np.array([len(reference) for _, reference in pairs])
        if not lengths.any():
            raise UserError(
                f"{self.name}: the references have no {self.unit} between them, so there is no rate of errors; "
                "give references that are not empty"
            )
        distances = np.array([Levenshtein.distance(*pair) for pair in pairs])
        if self.capped:
            distances = np.minimum(distances, lengths)
        return np.stack([distances, lengths], axis=1).astype(np.float64)

    def split(self, text: str) -> Sequence[str]:
        """Return a text in what is counted."""
        return text

    def of_totals(self, totals: Array) -> Array:
        """Return 100 Σ distances / Σ lengths."""
        scores: Array = 100 * totals[..., 0] / totals[..., 1]
        return scores

    def signature(self) -> list[str]:
        """Return the name, whether errors are capped, whether case was left out, and the library's version."""
        case = ["case:lc"] if self.lowercase else []
        return [f"score:{self.name}{':capped' if self.capped else ''}", *case, f"rapidfuzz:{version('rapidfuzz')}"]


class WordErrorRate(CharacterErrorRate):
    """WER: the same in the words that `split` makes of a text, `rules` being its name in the signature."""

    name = "WER"
    unit = "word"

    def __init__(
        self, split: Callable[[str], list[str]], rules: str, capped: bool = False, lowercase: bool = False
    ) -> None:
        super().__init__(capped, lowercase)
        self._split = split
        self._rules = rules

    def split(self, text: str) -> Sequence[str]:
        """Return the words of a text."""
        return self._split(text)

    def signature(self) -> list[str]:
        """Return the same, with what counts as a word."""
        name, *computation = super().signature()
        return [name, f"tok:{self._rules}", *computation]
