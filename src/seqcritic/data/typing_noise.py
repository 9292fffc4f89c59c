"""The errors that people make when they type, as noise of the spelling task; most text is right, and so are some lines.

Each line has a rate of its own: none for a share of the lines, else uniform up to the highest. So many characters of it
on average become an error, each of a kind drawn by its weight, at a place where that kind can happen. Only letters and
the spaces between words are touched. Errors follow each other, so that one may hit what another has made.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seqcritic.settings.data import TypingSettings

# The keys, and by how much of a key's width a row is moved to the right.
KEY_ROWS = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
# What is written for what is heard, both ways.
CONFUSED = (
    ("ie", "ei"), ("f", "ph"), ("c", "k"), ("c", "s"), ("s", "z"), ("tion", "sion"), ("ance", "ence"), ("ant", "ent"),
    ("able", "ible"), ("er", "or"), ("er", "ar"), ("er", "re"), ("ea", "ee"), ("ei", "ai"), ("ou", "u"), ("oo", "ou"),
    ("au", "o"), ("a", "e"), ("i", "e"), ("i", "y"), ("o", "u"), ("ly", "ley"), ("ck", "k"), ("g", "j"), ("kn", "n"),
    ("wh", "w"), ("qu", "kw"), ("x", "ks"), ("ful", "full"), ("ght", "t"), ("sc", "s"),
)  # fmt: skip
MOST_TRIES = 20
Edit = Callable[[str, int, np.random.Generator], str | None]
"""A text, a place in it and where to draw from, to the text with an error there; None where there can be none."""


def _neighbouring_keys() -> dict[str, str]:
    places = {key: (row, shift + place) for row, (keys, shift) in enumerate(KEY_ROWS) for place, key in enumerate(keys)}
    return {
        key: "".join(
            other
            for other, (other_row, other_place) in places.items()
            if other != key and abs(other_row - row) <= 1 and abs(other_place - place) <= 1
        )
        for key, (row, place) in places.items()
    }


NEIGHBOURS = _neighbouring_keys()


def _is_letter(text: str, place: int) -> bool:
    return place < len(text) and text[place] in NEIGHBOURS  # letters alone have neighbours


def _neighbour(text: str, place: int, draws: np.random.Generator) -> str | None:
    if not _is_letter(text, place):
        return None
    return text[:place] + _key_beside(text[place], draws) + text[place + 1 :]


def _transposition(text: str, place: int, draws: np.random.Generator) -> str | None:
    if not (_is_letter(text, place) and _is_letter(text, place + 1)) or text[place] == text[place + 1]:
        return None
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def _omission(text: str, place: int, draws: np.random.Generator) -> str | None:
    return text[:place] + text[place + 1 :] if _is_letter(text, place) else None


def _insertion(text: str, place: int, draws: np.random.Generator) -> str | None:
    if not _is_letter(text, place):
        return None
    after = place + int(draws.integers(2))  # before or behind the key that was meant
    return text[:after] + _key_beside(text[place], draws) + text[after:]


def _doubled_letter(text: str, place: int, draws: np.random.Generator) -> str | None:
    """One letter twice, or two that are the same once."""
    if not _is_letter(text, place):
        return None
    is_double = text[place + 1 : place + 2] == text[place]
    return text[:place] + text[place + 1 :] if is_double else text[:place] + text[place] + text[place:]


def _phonetic_confusion(text: str, place: int, draws: np.random.Generator) -> str | None:
    found = [(old, new) for pair in CONFUSED for old, new in (pair, pair[::-1]) if text.startswith(old, place)]
    if not found:
        return None
    old, new = found[int(draws.integers(len(found)))]
    return text[:place] + new + text[place + len(old) :]


def _missing_space(text: str, place: int, draws: np.random.Generator) -> str | None:
    is_between = 0 < place < len(text) - 1 and text[place] == " "
    return text[:place] + text[place + 1 :] if is_between else None


def _split_word(text: str, place: int, draws: np.random.Generator) -> str | None:
    if place == 0 or not (_is_letter(text, place - 1) and _is_letter(text, place)):
        return None
    return f"{text[:place]} {text[place:]}"


def _key_beside(key: str, draws: np.random.Generator) -> str:
    keys = NEIGHBOURS[key]
    return keys[int(draws.integers(len(keys)))]


KINDS: dict[str, Edit] = {
    "neighbours": _neighbour,
    "transpositions": _transposition,
    "omissions": _omission,
    "insertions": _insertion,
    "doubled_letters": _doubled_letter,
    "phonetic_confusions": _phonetic_confusion,
    "missing_spaces": _missing_space,
    "split_words": _split_word,
}


class TypingNoise:
    """Draws errors for lines in the alphabet of the spelling task."""

    def __init__(self, settings: TypingSettings) -> None:
        self._settings = settings
        weights = np.array([getattr(settings, kind) for kind in KINDS])
        # Running sums: a kind of weight 0 has no width in them, and is never drawn.
        self._chances = np.cumsum(weights / weights.sum())
        self._kinds = list(KINDS.values())

    def corrupt(self, line: str, draws: np.random.Generator) -> str:
        """Return a line with as many errors as its rate, which is drawn here, gives it; a line is never left empty."""
        is_clean, rate = draws.random() < self._settings.clean, draws.random() * self._settings.highest_rate
        for _ in range(0 if is_clean else int(draws.binomial(len(line), rate))):
            line = self._with_an_error(line, draws) or line  # also where its only letter would be lost
        return line

    def _with_an_error(self, line: str, draws: np.random.Generator) -> str | None:
        """Return the line with an error of some kind at the first place, of a few drawn, where that can happen."""
        edit = self._kinds[int(np.searchsorted(self._chances, draws.random(), side="right"))]
        places = draws.integers(len(line), size=MOST_TRIES)
        return next((found for place in places.tolist() if (found := edit(line, place, draws))), None)
