"""Edit distance of every prefix, for a whole batch at once; and the error rate of a corpus, of characters or tokens.

One row of the Levenshtein table a token of the prediction: D_i[j] is the distance of its first i tokens to the
first j of the reference. Within a row the only chain is D_i[j] = min(D_i[j], D_i[j-1] + 1), which a running minimum
of D_i[j] − j resolves, so the only loop is over the steps of the longest prediction.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Self

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import Array, References, Scorable, ScoreOptions, hold_last
from seqcritic.errors import UserError
from seqcritic.scores.shared.matching import tokens_of_all
from seqcritic.scores.shared.texts import as_compared
from seqcritic.scores.shared.token_score import TokenScore

NEVER = 10_000  # a distance beyond any other, small enough for 16 bits


def distance_table(predictions: Tensor, references: Tensor, unknown: int | None = None) -> Tensor:
    """Return D [B, T + 1, U + 1] of all prefixes of predictions [B, T] and of references [B, U].

    An `unknown` token is wrong at every position: it stands for different words.
    """
    num_examples, num_steps = predictions.shape
    width = references.shape[1]
    # Small exact integers: 16 bits move half the memory of 32.
    positions = torch.arange(width + 1, dtype=torch.int16, device=predictions.device)
    row = positions.expand(num_examples, width + 1)
    # Columns behind a reference's length are computed too, and never read: column j depends on none behind it.
    mismatches = predictions[:, :, None] != references[:, None, :]  # [B, T, U]
    if unknown is not None:
        mismatches |= (references == unknown)[:, None, :]
    mismatch = mismatches.to(torch.int16)
    rows = [row]
    for step in range(num_steps):
        candidate = torch.minimum(row[:, 1:] + 1, row[:, :-1] + mismatch[:, step])
        # Against nothing of the reference all tokens so far are wrong: D_i[0] = i.
        first = torch.full_like(row[:, :1], step + 1)
        row = torch.cummin(torch.cat([first, candidate], dim=1) - positions, dim=1).values + positions
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
    """Return [B, T, U + 1] distances of the prefixes Ŷ_1..t-1 with one token more; see `lookahead`.

    The new token stands against nothing, against y_j or against a gap after y_1..j, and what is left of the reference
    against nothing: the least of D[0] + |Y| + 1, D[j-1] + [it is not y_j] + |Y| − j and D[j] + 1 + |Y| − j.
    """
    positions = torch.arange(references.shape[1], dtype=torch.int16, device=references.device)
    mask = positions < reference_lengths[:, None]  # [B, U]
    # |Y| − j, what of the reference stands after y_j; NEVER keeps padding out of every minimum below.
    left = torch.where(mask, reference_lengths[:, None].to(torch.int16) - 1 - positions, NEVER)
    rows = distance_table(predictions[:, :-1], references, unknown)  # [B, T, U + 1]
    gaps = (rows[:, :, 1:] + 1 + left[:, None]).amin(dim=2)
    gaps = torch.minimum(gaps, rows[:, :, 0] + 1 + reference_lengths[:, None].to(torch.int16))
    before = rows[:, :, :-1] + left[:, None]  # [B, T, U], of the token against y_j, were it right
    # A wrong token is best put where going on costs least, whichever token it is.
    wrong = before.amin(dim=2, keepdim=True) + 1
    first = (references[:, :, None] == references[:, None, :]).int().argmax(dim=2)  # [B, U], of the same token
    first = first[:, None].expand_as(before)
    # Of a token that stands in the reference several times the best place counts: all of its places meet at its first.
    right = torch.full_like(before, NEVER).scatter_reduce(2, first, before, "amin").gather(2, first)
    if unknown is not None:
        right = right.masked_fill((references == unknown)[:, None], NEVER)
    # What is right in one place may cost less as a wrong token in another; the last entry is wrong in every place.
    against = torch.cat([torch.minimum(right, wrong), wrong], dim=2)  # [B, T, U + 1]
    return torch.minimum(against, gaps[:, :, None])


@register_score("edit-distance")
class EditDistanceScore(TokenScore):
    """R(Ŷ) = |Y| − d(Ŷ, Y), or with `normalise` the same over |Y|: one minus the paper's per-sentence ratio.

    The authors' published runs used the first; the paper defines the second (as −d/|Y|: a constant apart, which
    makes the score of the empty prediction 0 and changes no gradient). `unknown` tokens never match.

    The corpus score is the error rate 100 · Σ distances / Σ reference lengths in what `split` makes of a text, `rules`
    being its name in the signature; without it, in characters. K = 2: distance and length. `capped` limits a
    sentence's error to 1; `lowercase` leaves case out of the comparison.

    Of several references the nearest counts: R(Ŷ) = min |Y| − min d(Ŷ, Y), or the largest of 1 − d(Ŷ, Y) / |Y|.
    """

    higher_is_better = False
    has_lookahead = True

    def __init__(
        self,
        normalise: bool = False,
        unknown: int | None = None,
        *,
        split: Callable[[str], list[str]] | None = None,
        rules: str = "",
        capped: bool = False,
        lowercase: bool = False,
        tokens: str = "characters",
    ) -> None:
        self.normalise = normalise
        self.unknown = unknown
        self.split = split
        self.rules = rules
        self.capped = capped
        self.lowercase = lowercase
        self.name, self.unit_name = ("CER", "character") if split is None else ("WER", "word")
        # Σ (|Y| − d) over sentences is largest where the corpus' error rate is least: nothing to name.
        if normalise or capped or tokens == "subwords":
            self.surrogate = f"edit-distance{'/length' if normalise else ''}:{tokens}"
        self.description = "1 − edit distance / reference length" if normalise else "reference length − edit distance"

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """The error rate in the unit that is trained in.

        Subwords are the exception: a rate of errors in them could not be compared with another model's, so that
        characters are counted.
        """
        return cls(
            options.normalise,
            options.unknown,
            split=options.split,
            rules=options.rules,
            capped=options.capped,
            lowercase=options.lowercase,
            tokens=options.tokens,
        )

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        lengths = batch.reference_lengths
        distances = torch.stack(
            [
                prefix_distances(batch.predictions, references, own, self.unknown)
                for references, own in zip(batch.references.unbind(1), lengths.unbind(1), strict=True)
            ],
            dim=1,
        )  # [B, R, T + 1]
        return hold_last(self._nearest_score(distances, lengths[:, :, None]), batch.lengths)

    def lookahead(self, batch: Scorable) -> Tensor:
        """Return R [B, T, R · U + 1] of the prefixes with one token more: what is missing is wrong already."""

        def distances(references: Tensor, lengths: Tensor) -> Tensor:
            return extended_distances(batch.predictions, references, lengths, self.unknown)

        return self._nearest_score(tokens_of_all(batch, distances), batch.reference_lengths[:, :, None, None])

    def reward_unit(self, batch: Scorable) -> Tensor:
        """Return |Y| [B] of the shortest reference, or 1 where R is over |Y| already."""
        shortest = batch.reference_lengths.amin(dim=1).clamp(min=1).double()
        # R is min |Y| − min d: whichever reference is met, a perfect prediction has the length of the shortest.
        return torch.ones_like(shortest) if self.normalise else shortest

    def _nearest_score(self, distances: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R [B, …] of distances [B, R, …] to several references of so many tokens."""
        if self.normalise:
            return self._score(distances, reference_lengths).amax(dim=1)
        # Of nothing the least distance is the least length: so the empty prediction scores 0.
        return self._score(distances.amin(dim=1), reference_lengths.amin(dim=1))

    def _score(self, distances: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R of distances to references of so many tokens."""
        scores = (reference_lengths - distances).to(torch.get_default_dtype())
        return scores / reference_lengths.clamp(min=1) if self.normalise else scores

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return each sentence's distance and its reference's length; references that are all empty are refused."""
        compared = as_compared(predictions, references, self.lowercase)
        rows = [self._nearest(row.prediction, row.references) for row in compared]
        if not any(length for _, length in rows):
            raise UserError(
                f"{self.name}: the references have no {self.unit_name} between them, so there is no rate of errors; "
                "give references that are not empty"
            )
        return np.array(rows, np.float64)

    def _nearest(self, prediction: str, references: Sequence[str]) -> tuple[int, int]:
        """Return distance and length of the nearest reference, the longest of several."""
        split: Callable[[str], Sequence[str]] = self.split or str
        written = split(prediction)
        wanted = [split(reference) for reference in references]
        found = [(Levenshtein.distance(written, words), len(words)) for words in wanted]
        # Of references that are equally near the longest, as by it the rate of errors is least.
        distance, length = min(found, key=lambda each: (each[0], -each[1]))
        return (min(distance, length) if self.capped else distance), length

    def of_totals(self, totals: Array) -> Array:
        """Return 100 Σ distances / Σ lengths."""
        scores: Array = 100 * totals[..., 0] / totals[..., 1]
        return scores

    def signature(self) -> list[str]:
        """Return the name, what counts as a word, whether errors are capped and case left out, and the version."""
        words = [f"tok:{self.rules}"] if self.split else []
        case = ["case:lc"] if self.lowercase else []
        name = f"score:{self.name}{':capped' if self.capped else ''}"
        return [name, *words, *case, f"rapidfuzz:{version('rapidfuzz')}"]
