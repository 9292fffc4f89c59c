"""One Billion Word: shards in order, heldout section 0 to test, section 1 to validate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_archives import lines_of, prepare_here, printed, write_tar

from seqcritic.corpora.corpus import exactly
from seqcritic.corpora.table import CORPORA
from seqcritic.errors import UserError

ROOT = "1-billion-word-language-modeling-benchmark-r13output"
TRAINING = f"{ROOT}/training-monolingual.tokenized.shuffled"
HELDOUT = f"{ROOT}/heldout-monolingual.tokenized.shuffled"
FILES = {
    f"{ROOT}/README": "The benchmark\n",
    f"{TRAINING}/news.en-00002-of-00100": 'Second shard , it \'s " quoted "\n',
    f"{TRAINING}/news.en-00001-of-00100": "First shard .\nCafé\n",
    f"{HELDOUT}/news.en.heldout-00002-of-00050": "Of no use\n",
    f"{HELDOUT}/news.en.heldout-00001-of-00050": "Valid\n",
    f"{HELDOUT}/news.en.heldout-00000-of-00050": "Test one\nTest two\n",
    f"{HELDOUT}/news.en-00000-of-00100": "Test one\nTest two\nValid\nOf no use\n",
    f"{HELDOUT}/.svn/news.en.heldout-00000-of-00050": "Hidden\n",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_tar(tmp_path / f"{ROOT}.tar.gz", FILES)


def test_the_sets(archive: Path, tmp_path: Path):
    record = prepare_here("one-billion-word", tmp_path / "out", archive).record
    assert lines_of(tmp_path / "out/train.txt.gz") == ["First shard .", "Café", 'Second shard , it \'s " quoted "']
    assert lines_of(tmp_path / "out/valid.txt.gz") == ["Valid"]
    assert lines_of(tmp_path / "out/test.txt.gz") == ["Test one", "Test two"]
    assert record["notes"] == ["2 training shards in the source, not 99"]


def test_packed_files_carry_no_name_and_no_time(archive: Path, tmp_path: Path):
    prepare_here("one-billion-word", tmp_path / "out", archive)
    assert (tmp_path / "out/train.txt.gz").read_bytes()[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"


def test_sizes_that_differ_are_told(archive: Path, tmp_path: Path):
    output = printed(prepare_here("one-billion-word", tmp_path / "out", archive))
    assert "train              30,301,028      3" in output
    assert "valid                       -      1" in output
    assert "warning: test: 2, not 6,075" in output


def test_sizes_that_agree_are_not_complained_of(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    corpus = replace(CORPORA["one-billion-word"], sizes={"train": exactly(3), "test": exactly(2)})
    monkeypatch.setitem(CORPORA, "one-billion-word", corpus)
    prepared = prepare_here("one-billion-word", tmp_path / "out", archive)
    assert prepared.record["differing"] == []
    assert "warning" not in printed(prepared)


@pytest.mark.parametrize(
    ("left_out", "complaint"),
    [
        ("heldout-00000", "has no news.en.heldout-00000-of-00050"),
        ("heldout-00001", "has no news.en.heldout-00001-of-00050"),
        ("training", "has no training shard such as news.en-00001-of-00100"),
    ],
)
def test_parts_that_must_be_there(left_out: str, complaint: str, tmp_path: Path):
    files = {name: content for name, content in FILES.items() if left_out not in name}
    with pytest.raises(UserError) as caught:
        prepare_here("one-billion-word", tmp_path / "out", write_tar(tmp_path / "a.tar.gz", files))
    assert complaint in str(caught.value)
    assert not (tmp_path / "out").exists()
