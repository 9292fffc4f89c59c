"""Raw text to words and back by rules that hold for most languages written with spaces.

Splitting loses nothing but white space: the words of a line, joined without spaces, are the line without its spaces.
Joining puts the spaces back where punctuation usually has them. That is a guess, right for nearly all of the sentences
people write, and where it is wrong only a space is wrong.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain

# Raise this number with every change of the rules: vocabularies made by other rules must not be used.
RULES_VERSION = 1
# What an unknown token reads: one word to every tokeniser, of a character that no text can have, so that neither it
# nor a part of it equals anything. Text that is read has what Unicode says is the same in its place.
UNKNOWN_WORD = "\N{DOUBLE QUESTION MARK}"
# Where a reference must be made of tokens again, what its unknown tokens read: they do not equal the prediction's.
UNKNOWN_REFERENCE_WORD = "\N{QUESTION EXCLAMATION MARK}"
RESERVED = {UNKNOWN_WORD: "??", UNKNOWN_REFERENCE_WORD: "?!"}
NUM_REMEMBERED = 1 << 17

APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}"
JOINED_TO_LEFT = frozenset(",.!?;:)]}%°…\N{RIGHT DOUBLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}")
JOINED_TO_RIGHT = frozenset("([{¿¡#\N{DOUBLE LOW-9 QUOTATION MARK}\N{SINGLE LOW-9 QUOTATION MARK}")
JOINED_TO_BOTH = frozenset("/")
CURRENCIES = frozenset("$£€¥")
# What each mark closes if one of them is open; if none is, the mark itself opens a quotation.
CLOSES = {
    '"': '"\N{DOUBLE LOW-9 QUOTATION MARK}',
    "'": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": "\N{DOUBLE LOW-9 QUOTATION MARK}",
    "\N{LEFT SINGLE QUOTATION MARK}": "\N{SINGLE LOW-9 QUOTATION MARK}",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
}


def without_reserved(text: str) -> str:
    """Return a text in which nothing reads like an unknown token."""
    for mark, same in RESERVED.items():
        text = text.replace(mark, same)
    return text


def split_words(line: str) -> list[str]:
    """Return the words, numbers and punctuation marks of a raw line.

    Hyphenated words, numbers such as 2,700 and names with dots stay whole. English endings come off with their
    apostrophe (don 't, Tom 's), elided words keep it (l' homme).
    """
    return list(chain.from_iterable(map(_split_piece, line.split())))


def join_words(words: Iterable[str]) -> str:
    """Return words and punctuation marks as readable text."""
    words = list(words)
    pieces: list[str] = []
    opened: set[str] = set()
    space_allowed = False
    for index, word in enumerate(words):
        to_left, to_right = _joins(words, index, opened)
        if space_allowed and not to_left:
            pieces.append(" ")
        pieces.append(word)
        space_allowed = not to_right
    return "".join(pieces)


def _joins(words: Sequence[str], index: int, opened: set[str]) -> tuple[bool, bool]:
    """Return whether a word joins the one to its left and the one to its right; note opened and closed quotations."""
    word = words[index]
    first = word[:1]
    if len(word) > 1 and (first in APOSTROPHES or word[-1] in APOSTROPHES):
        # As split: 's and 't belong to the word before, l' and d' to the one that follows.
        return first in APOSTROPHES, word[-1] in APOSTROPHES
    if word in CLOSES:
        # One mark may open and close, as " and »: which it does depends on what is open.
        if closed := opened.intersection(CLOSES[word]):
            opened -= closed
            return True, False
        if word == "'" and (words[max(index - 1, 0)][-1:] in ("s", "S") or "'" not in words[index + 1 :]):
            # A possessive such as boys', or an omission: an opening mark would have a second one after it.
            return index > 0, index == 0
        opened.add(word)
        return False, True
    if first in JOINED_TO_RIGHT:
        opened.add(word)
        return False, True
    if first in CURRENCIES:
        before, after = (words[place][:1] if 0 <= place < len(words) else "" for place in (index - 1, index + 1))
        # $ 5 is $5, but 5 € stays as it is.
        return False, after.isdigit() and not before.isdigit()
    return first in JOINED_TO_LEFT or first in JOINED_TO_BOTH, first in JOINED_TO_BOTH


# Bounded: a large text has ever new pieces.
@functools.lru_cache(maxsize=NUM_REMEMBERED)
def _split_piece(piece: str) -> tuple[str, ...]:
    """Split what stands between two spaces; most of it has been seen before."""
    return tuple(_pattern().findall(piece))


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Return what matches one word; made on first use, because it asks for the class of every character."""
    mark = _marks()
    letter = rf"[\w{mark}{UNKNOWN_WORD}]"  # an unknown word is a word: what follows it is split off as from others
    apostrophe = f"[{APOSTROPHES}]"
    ending = rf"{apostrophe}(?i:s|t|m|d|re|ve|ll)(?!{letter})"
    return re.compile(
        # An address whole, but for marks at its end.
        r"(?:https?://|www\.)\S*[\w/]"
        # An English ending, behind its word.
        rf"|(?<={letter}){ending}"
        # A word or a number, with its sign, and what joins its parts: well-known, 2,700, U.S, AT&T.
        rf"|(?:(?<!\S)[-+−](?=\d))?{letter}+(?:(?:[-–.@&]|(?<=\d)[,:](?=\d)){letter}+)*"
        # Behind it an elision's apostrophe, as in l'homme, or the hyphen of a part left out, as in two- or threefold.
        rf"(?:(?!{ending}){apostrophe}(?={letter})|-(?!-|{letter}))?"
        # Runs of the same mark whole; any other by itself, with the marks that combine with it.
        rf"|\.+|-+|!+|\?+|[^\w\s{mark}{UNKNOWN_WORD}][{mark}]*"
    )


def _marks() -> str:
    """Return the combining marks and invisible format characters, which belong to the letter before, as ranges."""
    # All other characters of Unicode are of other classes.
    codes = [*range(0x20000), *range(0xE0000, 0xE0200)]
    marks = [code for code in codes if unicodedata.category(chr(code)) in ("Mn", "Mc", "Me", "Cf")]
    ranges: list[list[int]] = []
    for code in marks:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
