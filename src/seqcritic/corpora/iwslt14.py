"""IWSLT 2014 German-English as Ranzato et al. (2016, "Sequence Level Training with Recurrent Neural Networks") cut it.

Training text is freed of tags, tokenised by Moses, filtered and lower-cased; every 23rd pair that is left validates.
The test set is all development and test sets of 2010 to 2012, one after the other, tokenised and lower-cased but not
filtered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from seqcritic.corpora.corpus import Built
from seqcritic.corpora.markup import read_segments, read_tagged_sentences
from seqcritic.corpora.moses import moses_tokenizer
from seqcritic.corpora.pairs import VALID_EVERY, PairFilter, is_for_validation, side_by_side
from seqcritic.corpora.sets import Sets

LANGUAGES = ("de", "en")
TEST_SETS = ("dev2010", "dev2012", "tst2010", "tst2011", "tst2012")
FILTER = PairFilter(maximum_length=50, maximum_ratio=1.5)
SETTINGS = {
    "tokenizer": "Moses",
    "lowercase": True,
    "maximum_length": FILTER.maximum_length,
    "maximum_ratio": FILTER.maximum_ratio,
    "valid_every": VALID_EVERY,
    "test_sets": list(TEST_SETS),
}

_TRAIN = re.compile(r"train\.tags\.de-en\.(de|en)")
_TEST = re.compile(rf"IWSLT14\.TEDX?\.({'|'.join(TEST_SETS)})\.de-en\.(de|en)\.xml")


def key_of(name: str) -> str | None:
    """Return train.de, tst2010.en and the like for the files of the archive."""
    if match := _TRAIN.fullmatch(name):
        return f"train.{match[1]}"
    if match := _TEST.fullmatch(name):
        return f"{match[1]}.{match[2]}"
    return None


def missing(keys: AbstractSet[str]) -> str | None:
    """Return what must be there and is not: training text, and at least one test set."""
    for language in LANGUAGES:
        if f"train.{language}" not in keys:
            return f"train.tags.de-en.{language}"
    if not _complete_test_sets(keys):
        return "pair of test files such as IWSLT14.TED.tst2010.de-en.de.xml and IWSLT14.TED.tst2010.de-en.en.xml"
    return None


def build(files: Mapping[str, Path], sets: Sets) -> Built:
    """Write train, valid and test."""
    tokenizers = [moses_tokenizer(language) for language in LANGUAGES]
    built = Built()
    num_kept = 0
    for pair in built.count("training pairs", _pairs(files, "train", read_tagged_sentences)):
        source, target = (_prepare(tokenizer(side)) for tokenizer, side in zip(tokenizers, pair, strict=True))
        fault = FILTER.fault(source, target)
        if fault is not None:
            built.leave_out(fault)
            continue
        # Counted after the filter: which pair is the 23rd depends on what was left out before it.
        num_kept += 1
        sets.write("valid" if is_for_validation(num_kept) else "train", " ".join(source), " ".join(target))
    complete = _complete_test_sets(files.keys())
    built.notes += [f"no {name} in the source: the test set lacks it" for name in TEST_SETS if name not in complete]
    for name in complete:
        for pair in _pairs(files, name, read_segments):
            # The evaluation files have typographic apostrophes, which the training text has not.
            sides = [tokenizer(side.replace("’", "'")) for tokenizer, side in zip(tokenizers, pair, strict=True)]
            sets.write("test", *(" ".join(_prepare(side)) for side in sides))
    return built


def _pairs(files: Mapping[str, Path], name: str, read: Callable[[Path], Iterator[str]]) -> Iterator[tuple[str, str]]:
    first, second = (files[f"{name}.{language}"] for language in LANGUAGES)
    return side_by_side(read(first), read(second), (first.name, second.name))


def _prepare(tokenised: str) -> list[str]:
    return tokenised.lower().split()  # after Moses, which knows abbreviations by their capitals


def _complete_test_sets(keys: AbstractSet[str]) -> list[str]:
    return [name for name in TEST_SETS if all(f"{name}.{language}" in keys for language in LANGUAGES)]
