"""Checks that the embedded text is the one that all published figures were made with."""

from __future__ import annotations

import hashlib
import lzma

from seqcritic import load_recipe
from seqcritic.data.spelling import EMBEDDED_FILE, embedded_sentences
from seqcritic.data.task import build_task
from seqcritic.settings.data import SPLITS

DIGEST = "4dfb0055763c01073d08447d097d4092"


def test_text_is_frozen() -> None:
    content = lzma.decompress(EMBEDDED_FILE.read_bytes())
    assert hashlib.blake2b(content, digest_size=16).hexdigest() == DIGEST


def test_splits_are_disjoint_and_complete() -> None:
    splits = {split: embedded_sentences(split) for split in SPLITS}
    assert {split: len(sentences) for split, sentences in splits.items()} == {
        "train": 50_135,
        "valid": 2_770,
        "test": 2_762,
    }
    # Sentences that differ in case alone count as the same.
    assert len({sentence.lower() for sentences in splits.values() for sentence in sentences}) == 55_667


def test_demo_reads_the_published_data() -> None:
    task = build_task(load_recipe("demo").data)
    assert task.fingerprint() == "69424b92221d9a76-ec364dd0a9a8bbb5"
    assert "text:d38f926b" in task.conditions("test")  # as in the signature of docs/results/demo/comparison.json


def test_notice_names_the_sources() -> None:
    notice = EMBEDDED_FILE.with_name("NOTICE").read_text(encoding="utf-8")
    for holder in ("Python Software Foundation; All Rights Reserved", "NumPy Developers", "Facebook, Inc"):
        assert holder in notice
