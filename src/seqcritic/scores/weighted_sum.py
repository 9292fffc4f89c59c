"""Several scores as one: their weighted sum, each in the same unit.

Scores count in different units: BLEU of a sentence is paid times |Y|, TER in words, a function of one's own in whatever
it returns. Before they are added each is brought to its unit of one, u_k(Ŷ): 1 for a prediction that could not be
better by BLEU, chrF, ROUGE, CIDEr, an error rate or exact match; the value itself, less that of the empty prediction,
for a function. Then

    R(Ŷ) = |Y| Σ_k w_k u_k(Ŷ),

one reward a token on average where the weights add up to one, as for single scores. The corpus score is
100 Σ_k w_k s_k, with s_k the corpus score of the part over what is one whole in it (100 for those in percent, 10 for
CIDEr, 1 for a function), negated where lower is better: of percentages it is the sum of what is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import Array, References, Scorable, Score, ScoreOptions
from seqcritic.errors import UserError

POINTS = 100.0


@register_score("weighted-sum")
class WeightedSum(Score):
    """R(Ŷ) = |Y| Σ w_k u_k(Ŷ). K is the sum over its parts' summands.

    |Y| is that of the first reference. It tells what each next token is worth where all of its parts do.
    """

    name = "weighted sum"

    def __init__(self, parts: Sequence[tuple[Score, float]]) -> None:
        if not parts:
            raise UserError("score.parts: give the scores to add up, as in [{name: bleu, weight: 1}]")
        self.parts = tuple(parts)
        scores = [part for part, _ in parts]
        # Scores of tokens need the ids of all references; texts are there for those that ask for them.
        self.unit = "tokens" if any(part.unit == "tokens" for part in scores) else "text"
        self.has_lookahead = all(part.has_lookahead for part in scores)
        names = " + ".join(f"{weight:g} × {part.name}" for part, weight in parts)
        self.description = f"({names}) × reference length"
        self.surrogate = _surrogate(self.parts)
        self.num_summands = sum(part.num_summands for part in scores)

    @classmethod
    def build(cls, options: ScoreOptions) -> Self:
        """The sum of the parts that settings name."""
        return cls(options.parts)

    def members(self) -> tuple[Score, ...]:
        """Return the parts."""
        return tuple(part for part, _ in self.parts)

    def read_corpus(self, read: Callable[[], Sequence[Sequence[list[int]]]]) -> None:
        """Tell all parts."""
        for part, _ in self.parts:
            part.read_corpus(read)

    def score(self, batch: Scorable) -> Tensor:
        """Return R(Ŷ) [B]."""
        return self._add(batch, lambda part: part.score(batch))

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Return R [B, T + 1], of each part as it counts prefixes: scores of tokens recount nothing."""
        return self._add(batch, lambda part: part.prefix_scores(batch))

    def lookahead(self, batch: Scorable) -> Tensor | None:
        """Return R [B, T, R · U + 1] where all parts have one."""
        if not self.has_lookahead:
            return None

        def promise(part: Score) -> Tensor:
            found = part.lookahead(batch)
            assert found is not None, "it promised one"
            return found

        return self._add(batch, promise)

    def reward_unit(self, batch: Scorable) -> Tensor:
        """Return |Y| [B]."""
        return batch.reference_lengths[:, 0].clamp(min=1).double()

    def _add(self, batch: Scorable, rewards: Callable[[Score], Tensor]) -> Tensor:
        """Return the sum of what the parts pay [B, …], each over its unit, times |Y|."""
        # A single number takes the shape of whatever is added: [B], [B, T + 1] or [B, T, R · U + 1].
        total = torch.zeros((), dtype=torch.float64)
        for part, weight in self.parts:
            paid = rewards(part).double()
            # Over its unit a part is 1 where it is perfect: weights then mean the same for scores of any scale.
            unit = part.reward_unit(batch).view(-1, *[1] * (paid.dim() - 1))
            total = total + weight * paid / unit
        lengths = self.reward_unit(batch).view(-1, *[1] * (total.dim() - 1))
        return (lengths * total).to(torch.get_default_dtype())

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        """Return the summands of all parts side by side."""
        found = [part.statistics(predictions, references, sources) for part, _ in self.parts]
        for (part, _), each in zip(self.parts, found, strict=True):
            # Else `of_parts` would cut between the wrong columns and return a figure all the same.
            if each.shape[1] != part.num_summands:
                raise UserError(f"{part.name}: returns {each.shape[1]} summands; its num_summands has to say so")
        return np.concatenate(found, axis=1)

    def of_totals(self, totals: Array) -> Array:
        """Return 100 Σ w_k s_k."""
        summed: Array = np.zeros(totals.shape[:-1])
        for (part, weight), score in zip(self.parts, self.of_parts(totals), strict=True):
            # An error rate counts against the sum, as its rewards do.
            sign = 1 if part.higher_is_better else -1
            summed = summed + sign * weight * POINTS / part.corpus_unit * score
        return summed

    def of_parts(self, totals: Array) -> list[Array]:
        """Return the corpus scores [...] of every part, as it has them by itself."""
        ends = list(accumulate((part.num_summands for part, _ in self.parts), initial=0))
        columns = [totals[..., first:last] for first, last in pairwise(ends)]
        return [part.of_totals(own) for (part, _), own in zip(self.parts, columns, strict=True)]

    def signature(self) -> list[str]:
        """Return the name, and each weight with the signature of its part, the number of references apart."""
        listed = []
        for part, weight in self.parts:
            name, *computation = part.signature()
            # A part's number is of the one pair that its signature was made with; evaluate.py names it for the whole.
            told = ",".join(each for each in computation if not each.startswith("nrefs:"))
            listed.append(f"part:{weight:g}*{name.removeprefix('score:')}{f'({told})' if told else ''}")
        return ["score:weighted-sum", *listed]


@dataclass(frozen=True)
class Weighted:
    """Scores, names of scores or functions with their weights, to be built for a model once its tokens are known."""

    parts: tuple[tuple[Any, float], ...]

    def build(self, make: Callable[[Any], Score]) -> WeightedSum:
        """Return the sum, each part made a score by `make`."""
        return WeightedSum([(make(part), weight) for part, weight in self.parts])


def weighted(parts: Sequence[tuple[str | Score | Callable[..., Any], float]]) -> Weighted:
    """Return a weighted sum to pass as a score: `weighted([("bleu", 1), (length_penalty, 0.2)])`.

    Parts are names of docs/scores.md, functions of texts or Score objects.
    """
    found = []
    for place, given in enumerate(parts):
        try:
            part, weight = given
            number = float(weight)
        except (TypeError, ValueError):
            raise UserError(f"weighted: part {place}: give a score and its weight, as in ('bleu', 1)") from None
        # Of weight 0 a part would be computed for nothing, and still decide whether the sum has a lookahead.
        if not np.isfinite(number) or number == 0:
            raise UserError(f"weighted: part {place}: the weight {number:g} is not a finite number other than 0")
        if not isinstance(part, str | Score) and not callable(part):
            raise UserError(f"weighted: part {place}: {type(part).__name__} is no score, name of one or function")
        found.append((part, number))
    if not found:
        raise UserError("weighted: give at least one score with its weight, as in [('bleu', 1)]")
    return Weighted(tuple(found))


def _surrogate(parts: Sequence[tuple[Score, float]]) -> str:
    """Return what rewards add up, `NAME:UNIT`: sentences stand in for the corpus even where all parts count alike."""
    names, units = [], []
    for part, weight in parts:
        # |Y| stands once before the sum, and a colon before the unit alone: a part's name may have neither.
        name, _, unit = part.surrogate.removeprefix("length*").partition(":")
        names.append(f"{weight:g}*{name or part.name.replace(':', '.')}")
        units += [unit] if unit else []
    return f"length*({'+'.join(names)}):{units[0] if units else 'sentences'}"
