"""WMT14 English-French, as selected by Schwenk for Cho et al. (2014): parallel files, one after the other.

The selected texts (bitexts.tgz) are tokenised by Moses and cased, and stay so; any other NAME.en with its NAME.fr is
taken the same way. News tests of 2012 and 2013 validate, that of 2014 tests; none of them is ever trained on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path

from seqcritic.corpora.corpus import Built
from seqcritic.corpora.markup import read_segments
from seqcritic.corpora.pairs import VALID_EVERY, PairFilter, is_for_validation, side_by_side
from seqcritic.corpora.sets import Sets
from seqcritic.data.text import read_lines

LANGUAGES = ("en", "fr")
FILTER = PairFilter(maximum_length=50)
# Each set in the files of Schwenk's dev+test.tgz, else in those of WMT.
VALID_SETS = (("ntst1213",), ("newstest2012", "newstest2013"))
TEST_SETS = (("ntst14",), ("newstest2014",))
HELD_OUT = {name for group in (*VALID_SETS, *TEST_SETS) for name in group}
SETTINGS = {
    "tokenizer": None,
    "lowercase": False,
    "maximum_length": FILTER.maximum_length,
    "maximum_ratio": FILTER.maximum_ratio,
    "valid_sets": [list(group) for group in VALID_SETS],
    "valid_every_without_sets": VALID_EVERY,
    "test_sets": [list(group) for group in TEST_SETS],
}

# WMT distributes this one test set as SGM only.
_SGM = {"newstest2014-fren-src.en.sgm": "newstest2014.en", "newstest2014-fren-ref.fr.sgm": "newstest2014.fr"}
_LANGUAGE_PAIR = re.compile(r"\.([a-z]{2})-([a-z]{2})$")


def key_of(name: str) -> str | None:
    """Return NAME.en or NAME.fr for the sides of a parallel text; texts of other languages are of no use."""
    plain = name.removesuffix(".gz")
    stem, _, language = plain.rpartition(".")
    pair = _LANGUAGE_PAIR.search(stem)
    # NAME.de-en.en is the English side of another pair of languages, and no side of ours.
    if language in LANGUAGES and stem and (pair is None or set(pair.groups()) == set(LANGUAGES)):
        return plain
    return _SGM.get(name)


def missing(keys: AbstractSet[str]) -> str | None:
    """Return what must be there and is not: a parallel text to train on."""
    if not _training_names(keys):
        return "pair of files NAME.en and NAME.fr, plain or .gz, such as bitexts.selected/ep7_pc45.en.gz and .fr.gz"
    return None


def build(files: Mapping[str, Path], sets: Sets) -> Built:
    """Write train, valid and, if it is there, test."""
    built = Built()
    valid, test = (_first_complete(groups, files.keys()) for groups in (VALID_SETS, TEST_SETS))
    built.notes += _notes(files.keys(), valid, test)
    num_kept = 0
    pairs = chain.from_iterable(_pairs(files, name) for name in _training_names(files.keys()))
    for source, target in built.count("training pairs", pairs):
        source_tokens, target_tokens = source.split(), target.split()  # tokenised already
        fault = FILTER.fault(source_tokens, target_tokens)
        if fault is not None:
            built.leave_out(fault)
            continue
        num_kept += 1
        # Pairs validate only where the source has no set for it.
        split = "valid" if not valid and is_for_validation(num_kept) else "train"
        sets.write(split, " ".join(source_tokens), " ".join(target_tokens))
    for split, names in (("valid", valid), ("test", test)):
        for name in names:
            for pair in _pairs(files, name):
                sets.write(split, *(" ".join(side.split()) for side in pair))
    return built


def _pairs(files: Mapping[str, Path], name: str) -> Iterator[tuple[str, str]]:
    first, second = (files[f"{name}.{language}"] for language in LANGUAGES)
    return side_by_side(_read(first), _read(second), (first.name, second.name))


def _read(path: Path) -> Iterator[str]:
    return read_segments(path) if path.suffix == ".sgm" else read_lines(path, "source")


def _complete_names(keys: AbstractSet[str]) -> list[str]:
    names = {key.rpartition(".")[0] for key in keys}
    return sorted(name for name in names if all(f"{name}.{language}" in keys for language in LANGUAGES))


def _training_names(keys: AbstractSet[str]) -> list[str]:
    return [name for name in _complete_names(keys) if name not in HELD_OUT]


def _first_complete(groups: tuple[tuple[str, ...], ...], keys: AbstractSet[str]) -> list[str]:
    complete = _complete_names(keys)
    # The first group of which there is anything; one without its other half is told in the notes.
    return next((found for group in groups if (found := [name for name in group if name in complete])), [])


def _notes(keys: AbstractSet[str], valid: list[str], test: list[str]) -> list[str]:
    notes = []
    if not valid:
        notes.append(f"no newstest2012 and newstest2013 in the source: every {VALID_EVERY}rd training pair validates")
    elif valid not in ([*group] for group in VALID_SETS):
        notes.append(f"the validation set is {valid[0]} only: its other half is not in the source")
    if not test:
        notes.append("no newstest2014 in the source: there is no test set")
    complete = set(_complete_names(keys))
    lone = sorted(key for key in keys if key.rpartition(".")[0] not in complete)
    if lone:
        notes.append(f"left out, as the other language is not in the source: {', '.join(lone)}")
    return notes
