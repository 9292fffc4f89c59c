"""Where a text differs from its reference, by the shortest sequence of edits."""

from dataclasses import dataclass
from enum import Enum

from rapidfuzz.distance import Levenshtein


class Kind(Enum):
    """How a piece of a text relates to the reference."""

    EQUAL = "equal"
    WRONG = "wrong"
    EXTRA = "extra"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text: what it says, and what the reference says in its place."""

    kind: Kind
    written: str
    expected: str

    @property
    def tag(self) -> str:
        """The HTML element that marks it; none where the texts are equal."""
        return {Kind.WRONG: "mark", Kind.EXTRA: "del", Kind.MISSING: "ins"}.get(self.kind, "")

    def show(self, space: str) -> str:
        """Return what a reader sees, spaces by some sign."""
        return (self.expected if self.kind is Kind.MISSING else self.written).replace(" ", space)

    def explain(self, space: str) -> str:
        """Say in words what the shape of the mark shows."""
        if self.kind is Kind.WRONG and self.expected:
            return f"“{self.show(space)}” instead of “{self.expected.replace(' ', space)}”"
        return f"“{self.show(space)}” is {self.kind.value}"


@dataclass(frozen=True, slots=True)
class Difference:
    """A text cut into pieces, what stands between them, and how many edits would make it the reference."""

    pieces: tuple[Piece, ...]
    separator: str
    num_edits: int


def compare_characters(written: str, reference: str) -> Difference:
    """Align two texts character by character."""
    return _compare(list(written), list(reference), "")


def compare_words(written: str, reference: str) -> Difference:
    """Align two texts word by word; any white space between words counts as one space."""
    return _compare(written.split(), reference.split(), " ")


def _compare(written: list[str], reference: list[str], separator: str) -> Difference:
    # What would be deleted to reach the reference is extra, what would be inserted is missing.
    kinds = {"equal": Kind.EQUAL, "replace": Kind.WRONG, "delete": Kind.EXTRA, "insert": Kind.MISSING}
    pieces = tuple(
        Piece(
            kind=kinds[code.tag],
            written=separator.join(written[code.src_start : code.src_end]),
            expected=separator.join(reference[code.dest_start : code.dest_end]),
        )
        for code in Levenshtein.opcodes(written, reference)
    )
    return Difference(pieces, separator, Levenshtein.distance(written, reference))
