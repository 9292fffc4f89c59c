"""The critic's values along one prediction: plain data, from which the table and the page are made.

The end token is the empty string here, so that no token of a vocabulary can be mistaken for it; source and reference
carry theirs, for attention may rest on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from seqcritic.report.formats import format_probability, format_sum, format_value
from seqcritic.report.records import Number, Record

END = ""
_END_SIGN = "∅"
_SIGNS = str.maketrans({" ": "␣", "\u00a0": "␣", "\t": "⇥", "\n": "⏎", "\r": "⏎"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could be chosen: the critic's value Q̂ of it and the actor's probability."""

    token: str
    value: Number
    probability: Number


@dataclass(frozen=True, slots=True)
class Step:
    """One token of the prediction, with what actor and critic made of the prefix before it.

    `best` are the tokens with the largest values, `likeliest` those with the largest probabilities. The actor attends
    to the source, the critic to the reference.
    """

    token: str
    probability: Number
    value: Number
    reward: Number
    best: tuple[Candidate, ...]
    likeliest: tuple[Candidate, ...]
    source_attention: tuple[Number, ...]
    reference_attention: tuple[Number, ...]

    @property
    def chosen(self) -> Candidate:
        """The chosen token, as a candidate."""
        return Candidate(self.token, self.value, self.probability)


@dataclass(frozen=True, slots=True)
class ValueTable(Record):
    """A prediction step by step. Source and reference end with the end token, the prediction unless it was cut."""

    record_name: ClassVar[str] = "values"
    source: tuple[str, ...]
    reference: tuple[str, ...]
    steps: tuple[Step, ...]
    prediction: str
    score_name: str
    title: str
    note: str

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError("values.steps: empty; a prediction has at least its end token")
        for name, tokens in (("source", self.source), ("reference", self.reference)):
            if not tokens or tokens[-1] != END:
                raise ValueError(f"values.{name}: must end with the end token, the empty string")
            for index, step in enumerate(self.steps):
                attention = step.source_attention if name == "source" else step.reference_attention
                if len(attention) != len(tokens):
                    found = f"expected {len(tokens)} numbers, one for each token, found {len(attention)}"
                    raise ValueError(f"values.steps[{index}].{name}_attention: {found}")

    @property
    def is_spelled(self) -> bool:
        """Whether every token is a character, as in a model that spells."""
        return all(len(token) <= 1 for token in (*self.source, *self.reference))

    def write(self, tokens: Sequence[str]) -> str:
        """Write tokens as one line, words apart and characters not, without the end token."""
        return ("" if self.is_spelled else " ").join(token for token in tokens if token != END)

    @property
    def score(self) -> float:
        """The score of the whole prediction: the sum of the rewards."""
        return sum(step.reward for step in self.steps)

    @property
    def collected(self) -> tuple[float, ...]:
        """The rewards summed up to and including each step."""
        return tuple(accumulate(step.reward for step in self.steps))

    @property
    def remaining(self) -> tuple[float, ...]:
        """The rewards that were still to come before each step: what the value of its token forecasts."""
        # Summed from the end: each step then has the rewards from itself on.
        return tuple(accumulate(step.reward for step in reversed(self.steps)))[::-1]

    @property
    def expected(self) -> tuple[str, ...]:
        """The token of the reference that would go on, at each step, from what was written before it."""
        return find_continuations(self.reference, [step.token for step in self.steps])

    @property
    def summaries(self) -> tuple[str, ...]:
        """What happened at each step, in words."""
        return tuple(
            f"Step {index + 1} of {len(self.steps)} takes “{show_token(step.token)}”. "
            f"The actor gives it probability {format_probability(step.probability)}; "
            f"the critic expects {format_value(step.value)} from here on, and {format_sum(remaining)} came."
            for index, (step, remaining) in enumerate(zip(self.steps, self.remaining, strict=True))
        )


def show_token(token: str) -> str:
    """Write a token so that the end token and white space can be seen."""
    return token.translate(_SIGNS) if token else _END_SIGN


def find_continuations(reference: Sequence[str], prediction: Sequence[str]) -> tuple[str, ...]:
    """Return, for each position of a prediction, the token that follows in the reference.

    It follows the beginning of the reference that is nearest, by edit distance, to what the prediction has before that
    place; of several as near, one that ends with the same token, then the one nearest in length.
    """
    # Without its end token, which follows the whole reference and is found at its place.
    length = len(reference) - 1
    # One row of the distance table: of the prediction so far to each beginning of the reference.
    row = list(range(length + 1))
    found = []
    for position, token in enumerate(prediction):
        ranks = []
        for end, distance in enumerate(row):
            ends_alike = end > 0 and position > 0 and reference[end - 1] == prediction[position - 1]
            ranks.append((distance, not ends_alike, abs(end - position), end))
        # The ranks end with the place itself: full ties go to the shorter beginning.
        found.append(reference[min(ranks)[-1]])
        following = [position + 1]
        for end in range(1, length + 1):
            substituted = row[end - 1] + (token != reference[end - 1])
            following.append(min(row[end] + 1, following[-1] + 1, substituted))
        row = following
    return tuple(found)
