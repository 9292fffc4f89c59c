"""Predictions of the spelling task brought back to the text they correct.

A model reads text in its own small alphabet, without capitals. What it writes is aligned with what it read, character
by character, and only its replacements are carried over to the original: the noise it was trained on replaces
characters and does nothing else, so a character that it drops or adds is a slip. Nothing of a line is ever lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rapidfuzz.distance import Levenshtein

from seqcritic.data.vocabulary import OTHER_CHARACTER


@dataclass(frozen=True)
class Original:
    """What stands in a line for one character of its normal form; fixed if the alphabet has no such character."""

    text: str
    fixed: bool

    @property
    def normal(self) -> str:
        """The character that the model reads, unless it is fixed."""
        return " " if self.text.isspace() else self.text.lower()


def align(source: str, prediction: str, by_place: bool = True) -> list[str]:
    """Return what the prediction has in the place of every character of the source; together they are all of it.

    Texts of one length agree position by position, unless not `by_place`. Otherwise an alignment with the fewest edits
    decides: a dropped character has nothing in its place, an added one stands with the character before it, or with the
    first.
    """
    if by_place and len(source) == len(prediction):
        return list(prediction)
    starts = [0] * (len(source) + 1)
    # A character's entry ends where the next one's begins, so that beginnings are all there is to find.
    for step in Levenshtein.opcodes(source, prediction):
        kept = step.tag in ("equal", "replace")
        for offset in range(step.src_end - step.src_start):
            # Dropped characters all begin at one place, and so have nothing between them.
            starts[step.src_start + offset] = step.dest_start + offset * kept
    # What was added before the first character or behind the last one belongs to these.
    starts[0], starts[-1] = 0, len(prediction)
    return [prediction[start:end] for start, end in pairwise(starts)]


def restore(line: str, written: Sequence[str], table: dict[int, str], changes_length: bool = False) -> str:
    """Return the line with the replacements of `written`, one entry for every character of its normal form.

    Case and runs of white space stay, and so does what the alphabet lacks, whatever was written in its place. A
    written '#' stands for some character that the model cannot name, so it replaces nothing. With `changes_length`
    what is written may also drop characters and add others.
    """
    before, originals, after = read_originals(line, table)
    pairs = zip(originals, _in_capitals(originals), written, strict=True)
    place = _rewrite if changes_length else _replace
    # The normal form has no white space at its ends, so that the model was never asked about it.
    return before + "".join(place(original, capital, entry) for original, capital, entry in pairs) + after


def read_originals(line: str, table: dict[int, str]) -> tuple[str, list[Original], str]:
    """Return the white space before a line, what stands for each character of its normal form, and that after it."""
    before, blank = "", ""
    originals: list[Original] = []
    for character in line:
        normal = character.lower().translate(table)
        if normal == " ":
            blank += character
            continue
        if originals and blank:  # a run of white space is one space of the normal form
            originals.append(Original(blank, fixed=False))
        elif blank:
            before = blank
        blank = ""
        fixed = len(normal) > 1 or (normal == OTHER_CHARACTER and character != OTHER_CHARACTER)
        originals.append(Original(character, fixed))
        originals += [Original("", fixed=True)] * (len(normal) - 1)  # a few capitals are two characters in lower case
    return before, originals, blank


def _replace(original: Original, capital: bool, written: str) -> str:
    if original.fixed or not written or original.normal in written or written[0] == OTHER_CHARACTER:
        return original.text
    return written[0].upper() if capital or original.text.isupper() else written[0]


def _rewrite(original: Original, capital: bool, written: str) -> str:
    """Return what stands in the place of a character: itself where it is kept, and all else that was written there."""
    if original.fixed or OTHER_CHARACTER in written:
        return original.text
    before, kept, after = written.partition(original.normal)
    if capital:
        before, after = before.upper(), after.upper()
    elif original.text.isupper() and not kept:
        before = before[:1].upper() + before[1:]  # a capital that is replaced stays one, what follows it does not
    return before + (original.text if kept else "") + after


def _in_capitals(originals: Sequence[Original]) -> list[bool]:
    """Tell of every character whether its word is in capitals, two at least: then a digit becomes a capital too."""
    flags: list[bool] = []
    word: list[str] = []
    for original in [*originals, Original(" ", fixed=False)]:  # a last space, by which the last word ends
        word.append(original.text)
        if original.text.isspace():
            # Digits and marks are in no case: A.B. is in capitals by its letters.
            cased = [character for character in "".join(word) if character.lower() != character.upper()]
            flags += [len(cased) > 1 and "".join(cased).isupper()] * len(word)
            word = []
    return flags[:-1]
