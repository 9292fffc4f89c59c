"""WMT14 English-French: selected bitexts, the files of WMT, and folders of parallel text."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest
from small_archives import lines_of, prepare_here, printed, text, write_folder, write_tar

from seqcritic.corpora.wmt14 import key_of
from seqcritic.errors import UserError


def packed(*lines: str) -> bytes:
    return gzip.compress(text(lines).encode())


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """A folder with the two archives as they are distributed."""
    folder = tmp_path / "archives"
    folder.mkdir()
    long = " ".join(["mot"] * 51)
    bitexts = {
        "bitexts.selected/nc9.en.gz": packed("News &apos; s", "Too long in French", "   "),
        "bitexts.selected/nc9.fr.gz": packed("Nouvelles", long, "Rien"),
        "bitexts.selected/ep7_pc45.en.gz": packed("I  declare resumed", "Please rise"),
        "bitexts.selected/ep7_pc45.fr.gz": packed("Je déclare reprise", "Levez-vous"),
    }
    tests = {
        "dev/ntst1213.en": text(["A valid sentence", " ".join(["word"] * 60)]),
        "dev/ntst1213.fr": text(["Une phrase", "Une autre"]),
        "dev/ntst14.en": text(["A test sentence"]),
        "dev/ntst14.fr": text(["Une phrase de test"]),
    }
    write_tar(folder / "bitexts.tgz", bitexts)
    write_tar(folder / "dev+test.tgz", tests)
    return folder


def test_parallel_files_follow_each_other(downloads: Path, tmp_path: Path):
    record = prepare_here("wmt14-en-fr", tmp_path / "out", downloads).record
    assert lines_of(tmp_path / "out/train.en.gz") == ["I declare resumed", "Please rise", "News &apos; s"]
    assert lines_of(tmp_path / "out/train.fr.gz") == ["Je déclare reprise", "Levez-vous", "Nouvelles"]
    assert record["counts"] == {"read": 5, "train": 3, "valid": 2, "test": 1}
    assert record["left_out"] == {"too long": 1, "empty": 1}
    assert record["notes"] == []


def test_news_tests_are_not_filtered(downloads: Path, tmp_path: Path):
    prepare_here("wmt14-en-fr", tmp_path / "out", downloads)
    assert lines_of(tmp_path / "out/valid.fr.gz") == ["Une phrase", "Une autre"]
    assert lines_of(tmp_path / "out/test.en.gz") == ["A test sentence"]


def test_more_than_twelve_million_pairs_are_expected(downloads: Path, tmp_path: Path):
    output = printed(prepare_here("wmt14-en-fr", tmp_path / "out", downloads))
    assert "read for training  over 12,000,000      5" in output
    assert "warning: read for training: 5, not over 12,000,000" in output


def test_a_folder_without_news_tests(tmp_path: Path):
    lines = [f"line {number}" for number in range(1, 25)]
    folder = write_folder(tmp_path / "files", {"deep/own.en": text(lines), "own.fr.gz": packed(*lines)})
    prepared = prepare_here("wmt14-en-fr", tmp_path / "out", folder)
    assert lines_of(tmp_path / "out/valid.en.gz") == ["line 23"]
    assert lines_of(tmp_path / "out/train.fr.gz") == [*lines[:22], "line 24"]
    assert not (tmp_path / "out/test.en.gz").exists()
    assert "note: no newstest2012 and newstest2013 in the source: every 23rd training pair" in printed(prepared)
    assert "note: no newstest2014 in the source: there is no test set" in printed(prepared)


def test_with_news_tests_no_training_pair_validates(tmp_path: Path):
    files = {f"own.{side}": "line\n" * 30 for side in ("en", "fr")} | {f"ntst1213.{s}": "news\n" for s in ("en", "fr")}
    prepare_here("wmt14-en-fr", tmp_path / "out", write_folder(tmp_path / "files", files))
    assert lines_of(tmp_path / "out/valid.en.gz") == ["news"]
    assert len(lines_of(tmp_path / "out/train.en.gz")) == 30


def test_the_files_of_wmt(tmp_path: Path):
    sgm = '<refset setid="newstest2014" srclang="any">\n<seg id="1">{}</seg>\n</refset>\n'
    files = {
        "training/europarl-v7.fr-en.en": "One\n",
        "training/europarl-v7.fr-en.fr": "Un\n",
        "training/europarl-v7.cs-en.en": "Of no use\n",
        "training/lone.en": "Alone\n",
        "dev/newstest2013.en": "Valid thirteen\n",
        "dev/newstest2013.fr": "Treize\n",
        "dev/newstest2012.en": "Valid twelve\n",
        "dev/newstest2012.fr": "Douze\n",
        "test-full/newstest2014-fren-src.en.sgm": sgm.format("AT&T is here."),
        "test-full/newstest2014-fren-ref.fr.sgm": sgm.format("AT&T est là."),
        "test-full/newstest2014-fren-src.fr.sgm": sgm.format("not this one"),
        "test-full/newstest2014-deen-src.en.sgm": sgm.format("nor this"),
    }
    record = prepare_here("wmt14-en-fr", tmp_path / "out", write_tar(tmp_path / "wmt.tar", files)).record
    assert lines_of(tmp_path / "out/train.en.gz") == ["One"]
    assert lines_of(tmp_path / "out/valid.fr.gz") == ["Douze", "Treize"]
    assert lines_of(tmp_path / "out/test.en.gz") == ["AT&T is here."]
    assert lines_of(tmp_path / "out/test.fr.gz") == ["AT&T est là."]
    assert record["notes"] == ["left out, as the other language is not in the source: lone.en"]


def test_half_a_validation_set_is_noted(tmp_path: Path):
    files = {f"{name}.{side}": "x\n" for name in ("own", "newstest2013", "newstest2014") for side in ("en", "fr")}
    record = prepare_here("wmt14-en-fr", tmp_path / "out", write_folder(tmp_path / "files", files)).record
    assert record["notes"] == ["the validation set is newstest2013 only: its other half is not in the source"]


def test_memory_does_not_grow_with_the_text(tmp_path: Path):
    pair = (" ".join(["word"] * 40), " ".join(["mot"] * 50))
    files = {f"own.{side}": text([line] * 20_000) for side, line in zip(("en", "fr"), pair, strict=True)}
    archive = write_tar(tmp_path / "bitexts.tgz", files)
    tracemalloc.start()
    try:
        prepare_here("wmt14-en-fr", tmp_path / "out", archive)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"own.en": "x\n"}, "has no pair of files NAME.en and NAME.fr"),
        ({"newstest2012.en": "x\n", "newstest2012.fr": "x\n"}, "has no pair of files NAME.en and NAME.fr"),
        ({"own.en": "x\n", "own.fr": "x\ny\n"}, "own.en has 1 sentences and own.fr has more"),
        ({"own.en": "x\n", "own.fr.gz": packed("x")[:-9]}, "own.fr.gz:2: damaged gzip file"),
        ({"own.en": "x\n", "own.fr": "x\n", "b/own.fr": "x\n"}, "found twice: "),
    ],
)
def test_bad_folders_are_refused(files: dict[str, str | bytes], complaint: str, tmp_path: Path):
    folder = write_folder(tmp_path / "files", files)
    with pytest.raises(UserError) as caught:
        prepare_here("wmt14-en-fr", tmp_path / "out", folder)
    assert complaint in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("ccb2_pc30.en.gz", "ccb2_pc30.en"),
        ("europarl-v7.fr-en.fr", "europarl-v7.fr-en.fr"),
        ("giga-fren.release2.fixed.en.gz", "giga-fren.release2.fixed.en"),
        ("news-commentary-v9.de-en.en", None),
        ("newstest2012-src.en.sgm", None),
        ("README", None),
        (".en", None),
    ],
)
def test_names(name: str, key: str | None):
    assert key_of(name) == key
