"""The One Billion Word benchmark (Chelba et al. 2013): English news, tokenised and shuffled by its authors.

All training shards train, heldout section 0 tests as in the paper, and heldout section 1 validates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path

from seqcritic.corpora.corpus import Built
from seqcritic.corpora.sets import Sets
from seqcritic.data.text import read_lines

HELDOUT = {"00000": "test", "00001": "valid"}
NUM_TRAINING_SHARDS = 99
SETTINGS = {"test": "heldout section 0", "valid": "heldout section 1", "train": "all training shards"}

# Not shard 00000: the archive has it beside the heldout sections, which are its fiftieths.
_TRAIN = re.compile(r"news\.en-(?!00000)(\d{5})-of-00100(?:\.gz)?")
_HELDOUT = re.compile(r"news\.en\.heldout-(00000|00001)-of-00050(?:\.gz)?")


def key_of(name: str) -> str | None:
    """Return train-00001 and the like for training shards, test and valid for the heldout sections of use."""
    if match := _TRAIN.fullmatch(name):
        return f"train-{match[1]}"
    if match := _HELDOUT.fullmatch(name):
        return HELDOUT[match[1]]
    return None


def missing(keys: AbstractSet[str]) -> str | None:
    """Return what must be there and is not: both heldout sections and at least one training shard."""
    for section, split in HELDOUT.items():
        if split not in keys:
            return f"news.en.heldout-{section}-of-00050"
    if not _shards(keys):
        return "training shard such as news.en-00001-of-00100"
    return None


def build(files: Mapping[str, Path], sets: Sets) -> Built:
    """Write train, valid and test."""
    built = Built()
    shards = _shards(files.keys())
    if len(shards) != NUM_TRAINING_SHARDS:
        built.notes.append(f"{len(shards)} training shards in the source, not {NUM_TRAINING_SHARDS}")
    sentences = chain.from_iterable(read_lines(files[shard], "source") for shard in shards)
    for sentence in built.count("training sentences", sentences):
        sets.write("train", sentence)
    for split in HELDOUT.values():
        for sentence in read_lines(files[split], "source"):
            sets.write(split, sentence)
    return built


def _shards(keys: AbstractSet[str]) -> list[str]:
    return sorted(key for key in keys if key.startswith("train-"))
