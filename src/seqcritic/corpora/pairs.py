"""Sentences and their translations: two texts side by side, the filter, and the validation pairs among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from seqcritic.errors import UserError

# Ranzato et al. (2016) validate on every 23rd pair that the filter leaves, counting from 1.
VALID_EVERY = 23


@dataclass(frozen=True)
class PairFilter:
    """Which pairs to train on: both sides have words, none has too many, and none has many more than the other."""

    maximum_length: int
    maximum_ratio: float | None = None

    def fault(self, source: Sequence[str], target: Sequence[str]) -> str | None:
        """Return why the tokens of a pair are left out, or None for a pair to keep."""
        short, long = sorted((len(source), len(target)))
        if short == 0:
            return "empty"
        if long > self.maximum_length:
            return "too long"
        if self.maximum_ratio is not None and long / short > self.maximum_ratio:
            return "too unequal"
        return None


def side_by_side(first: Iterable[str], second: Iterable[str], names: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of two texts with one sentence a line; texts of unequal length are refused."""
    for number, (ours, theirs) in enumerate(zip_longest(first, second), start=1):
        if ours is None or theirs is None:
            short, long = names if ours is None else names[::-1]
            raise UserError(
                f"source: {short} has {number - 1:,} sentences and {long} has more; "
                "the two must have one translation for each: fetch them again"
            )
        yield ours, theirs


def is_for_validation(number: int) -> bool:
    """Return whether the pair of this number, counting kept pairs from 1, belongs to the validation set."""
    return number % VALID_EVERY == 0
