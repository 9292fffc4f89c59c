"""IWSLT 2014: exact lines from small archives of the original format."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from small_archives import iwslt_files, lines_of, prepare_here, printed, text, write_folder, write_tar

from seqcritic.errors import UserError
from seqcritic.files import unseal

TEST_ORDER = ("dev2010", "dev2012", "tst2010", "tst2011", "tst2012")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_tar(tmp_path / "de-en.tgz", iwslt_files())


def test_training_text_is_tokenised_filtered_and_lower_cased(archive: Path, tmp_path: Path):
    prepare_here("iwslt14", tmp_path / "out", archive)
    assert lines_of(tmp_path / "out/train.de") == [
        "jane doe : über bäume &amp; amp ; wälder",
        "ted talk : sie sagt , „ bäume “ seien schön .",
        "vielen dank , chris .",
        "das war z. b. nummer 5.",
    ]
    assert lines_of(tmp_path / "out/train.en") == [
        "jane doe : on trees &amp; amp ; woods",
        "ted talk : &quot; trees &quot; are nice , she says .",
        "thank you so much , chris .",
        "that was e.g. number 5 .",
    ]


def test_the_test_set_is_five_sets_in_order(archive: Path, tmp_path: Path):
    prepare_here("iwslt14", tmp_path / "out", archive)
    english = [line for name in TEST_ORDER for line in (f"this is {name} &apos;s sentence .", "another one")]
    assert lines_of(tmp_path / "out/test.en") == english
    assert len(lines_of(tmp_path / "out/test.de")) == len(english)


def test_a_folder_gives_the_same_as_the_archive(archive: Path, tmp_path: Path):
    from_archive = prepare_here("iwslt14", tmp_path / "out", archive)
    from_folder = prepare_here("iwslt14", tmp_path / "other", write_folder(tmp_path / "files", iwslt_files()))
    assert from_folder.record["files"] == from_archive.record["files"]


def numbered(count: int) -> list[str]:
    return [f"sentence {number}" for number in range(1, count + 1)]


def test_every_23rd_pair_that_is_left_validates(tmp_path: Path):
    kept = numbered(47)
    german = [line for sentence in kept for line in (sentence, "")]
    english = [line for sentence in kept for line in (sentence, "no translation")]
    archive = write_tar(tmp_path / "de-en.tgz", iwslt_files(text(german), text(english)))
    prepare_here("iwslt14", tmp_path / "out", archive)
    for language in ("de", "en"):
        assert lines_of(tmp_path / f"out/valid.{language}") == ["sentence 23", "sentence 46"]
        expected = [sentence for sentence in kept if sentence not in ("sentence 23", "sentence 46")]
        assert lines_of(tmp_path / f"out/train.{language}") == expected


@pytest.mark.parametrize(
    ("num_german", "num_english", "fault"),
    [
        (50, 50, None),
        (51, 50, "too long"),
        (50, 51, "too long"),
        (6, 4, None),
        (4, 6, None),
        (7, 4, "too unequal"),
        (4, 7, "too unequal"),
        (0, 3, "empty"),
        (3, 0, "empty"),
    ],
)
def test_the_filter(num_german: int, num_english: int, fault: str | None, tmp_path: Path):
    german = text(["ein Satz", " ".join(["wort"] * num_german)])
    english = text(["a sentence", " ".join(["word"] * num_english)])
    archive = write_tar(tmp_path / "de-en.tgz", iwslt_files(german, english))
    record = prepare_here("iwslt14", tmp_path / "out", archive).record
    assert record["left_out"] == ({} if fault is None else {fault: 1})
    assert record["counts"]["train"] == (2 if fault is None else 1)


def test_the_record_and_what_is_printed(archive: Path, tmp_path: Path):
    prepared = prepare_here("iwslt14", tmp_path / "out", archive)
    record = json.loads((tmp_path / "out/prepared.json").read_text(encoding="utf-8"))
    assert unseal(record) == prepared.record
    assert record["counts"] == {"read": 6, "train": 4, "valid": 0, "test": 10}
    assert record["left_out"] == {"empty": 1, "too unequal": 1}
    assert record["settings"]["maximum_length"] == 50
    assert [file["name"] for file in record["source"]["files"]] == ["de-en.tgz"]
    assert printed(prepared).splitlines() == [
        f"iwslt14 prepared in {tmp_path / 'out'}",
        "",
        "                        expected  found",
        "read for training              -      6",
        "train              about 153,000      4",
        "valid                      6,969      0",
        "test                       6,750     10",
        "",
        "left out of training: 1 empty, 1 too unequal",
        *(
            f"warning: {part}: {found}, not {expected}; the source is incomplete or another edition, "
            "so scores do not compare with published ones"
            for part, found, expected in (("train", 4, "about 153,000"), ("valid", 0, "6,969"), ("test", 10, "6,750"))
        ),
        "files: train.de, train.en, test.de, test.en",
    ]


def test_a_missing_test_set_is_noted(tmp_path: Path):
    files = {name: content for name, content in iwslt_files().items() if "tst2011" not in name}
    prepared = prepare_here("iwslt14", tmp_path / "out", write_tar(tmp_path / "de-en.tgz", files))
    assert prepared.record["notes"] == ["no tst2011 in the source: the test set lacks it"]
    assert "note: no tst2011 in the source" in printed(prepared)


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"de-en/README": "x"}, "has no train.tags.de-en.de; it has de-en/README"),
        ({}, "has no train.tags.de-en.de; it has no other file"),
        ({f"f{number}": "x" for number in range(7)}, "it has f0, f1, f2, f3, f4 and 2 more"),
        ({"train.tags.de-en.de": "ja\n"}, "has no train.tags.de-en.en"),
        ({"train.tags.de-en.de": "ja\n", "train.tags.de-en.en": "yes\n"}, "has no pair of test files such as IWSLT14"),
        (iwslt_files("ja\nnein\n", "yes\n"), "train.tags.de-en.en has 1 sentences and train.tags.de-en.de has more"),
        (iwslt_files("\n", "yes\n"), "nothing is left to train on: 1 empty"),
        (
            iwslt_files() | {"de-en/IWSLT14.TED.tst2010.de-en.de.xml": '<seg id="1"> Ja\n</seg>\n'},
            "IWSLT14.TED.tst2010.de-en.de.xml:1: <seg> without </seg>",
        ),
        (iwslt_files() | {"de-en/train.tags.de-en.en": b"one\n\xff\n"}, "train.tags.de-en.en:2: not valid UTF-8"),
    ],
)
def test_other_archives_are_refused(files: dict[str, str | bytes], complaint: str, tmp_path: Path):
    archive = write_tar(tmp_path / "de-en.tgz", files)
    with pytest.raises(UserError) as caught:
        prepare_here("iwslt14", tmp_path / "out", archive)
    assert complaint in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_the_tokenizer_must_be_there(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UserError, match=r"pip install 'seqcritic\[prepare\]'"):
        prepare_here("iwslt14", tmp_path / "out", archive)
    assert not (tmp_path / "out").exists()
