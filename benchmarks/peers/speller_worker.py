"""Lines from standard input corrected by SymSpell or pyspellchecker, word by word; runs where that is installed.

    PYTHON speller_worker.py symspell|pyspellchecker < lines

Each corrects words of letters and apostrophes alone, with its own English dictionary and its usual distance of two
edits; a word that it knows nothing for stays. Case of the first letter, or of all, and everything else is kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

WORD = re.compile(r"[A-Za-z][A-Za-z']*")


def symspell() -> Callable[[str], str]:
    """Return SymSpell's correction of a lower-case word."""
    from importlib.resources import files

    from symspellpy import SymSpell, Verbosity

    speller = SymSpell(max_dictionary_edit_distance=2)
    speller.load_dictionary(str(files("symspellpy") / "frequency_dictionary_en_82_765.txt"), 0, 1)
    return lambda word: speller.lookup(word, Verbosity.TOP, max_edit_distance=2, include_unknown=True)[0].term


def pyspellchecker() -> Callable[[str], str]:
    """Return pyspellchecker's correction of a lower-case word."""
    from spellchecker import SpellChecker

    speller = SpellChecker()
    return lambda word: speller.correction(word) or word


def in_case_of(word: str, corrected: str) -> str:
    """Return a correction in the case of the word it stands for."""
    if corrected == word.lower():
        return word
    return (
        corrected.upper() if word.isupper() and len(word) > 1 else corrected.title() if word[0].isupper() else corrected
    )


if __name__ == "__main__":
    correct = {"symspell": symspell, "pyspellchecker": pyspellchecker}[sys.argv[1]]()
    for line in sys.stdin:
        print(WORD.sub(lambda found: in_case_of(found[0], correct(found[0].lower())), line.rstrip("\n")), flush=True)
