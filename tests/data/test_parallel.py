"""Checks of reading pairs from files and of every fault, named by setting, file and line."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from seqcritic.contracts.batch import text_record
from seqcritic.data.parallel import Pair, read_pairs
from seqcritic.errors import UserError
from seqcritic.settings.data import PairFiles, TranslationSettings


def write(path: Path, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def texts(files: PairFiles) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in read_pairs(files, "data.train")]


def fault(files: PairFiles) -> str:
    with pytest.raises(UserError) as caught:
        list(read_pairs(files, "data.train"))
    return str(caught.value)


def test_two_files_line_by_line_plain_and_gzipped(tmp_path: Path) -> None:
    source = write(tmp_path / "a.de", "\ufeffeins\r\nzwei\n")
    target = write(tmp_path / "a.en.gz", "one\ntwo")
    files = PairFiles(source=(source,), target=(target,))
    assert list(read_pairs(files, "data.train")) == [Pair("eins", "one", target, 1), Pair("zwei", "two", target, 2)]


def test_several_files_of_all_kinds_follow_each_other(tmp_path: Path) -> None:
    record = json.dumps({"target": "four\n4", "source": "vier", "more": [1]})
    files = PairFiles(
        source=(write(tmp_path / "a.de", "eins\n"), write(tmp_path / "b.de", "zwei\n")),
        target=(write(tmp_path / "a.en", "one\n"), write(tmp_path / "b.en", "two\n")),
        pairs=(write(tmp_path / "c.tsv.gz", "drei\tthree\n"), write(tmp_path / "d.jsonl", f"{record}\n")),
    )
    assert texts(files) == [("eins", "one"), ("zwei", "two"), ("drei", "three"), ("vier", "four 4")]


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\u2028b\x0cc\td\x85e\n")
    assert texts(PairFiles(pairs=(path,))) == [("a\u2028b\x0cc", "d\x85e")]


def test_line_breaks_of_a_record_become_spaces(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"source": "a\\nb", "target": "c\\r\\nd"}\n', encoding="utf-8")
    (pair,) = read_pairs(PairFiles(pairs=[str(path)]), "data.train")
    assert (pair.source, pair.target) == ("a b", "c  d")


def test_a_record_may_have_several_references(tmp_path: Path) -> None:
    records = [{"source": "a", "target": ["b", "c\nd", "⁇"]}, {"source": "e", "target": ["f"]}]
    path = write(tmp_path / "a.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))
    first, second = read_pairs(PairFiles(pairs=(path,)), "data.train")
    assert first == Pair("a", "b", path, 1, ("c d", "??"))
    assert second.targets == ("f",)
    assert text_record(first.source, first.targets) != text_record(first.source, first.targets[:1])


@pytest.mark.parametrize("target", [[], ["b", 1], ["b", None], [["b"]], {"b": "c"}])
def test_a_list_of_anything_but_texts_is_refused(tmp_path: Path, target: object) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps({"source": "a", "target": target}))
    expected = 'not an object with the texts "source" and "target"; several references are a list of texts in "target"'
    assert fault(PairFiles(pairs=(path,))) == f"data.train.pairs: {path}:1: {expected}"


def test_pairs_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\nonly one column\n")
    assert next(read_pairs(PairFiles(pairs=(path,)), "data.train")).source == "a"


@pytest.mark.parametrize(("longer", "shorter"), [("source", "target"), ("target", "source")])
def test_unequal_line_counts(tmp_path: Path, longer: str, shorter: str) -> None:
    paths = {longer: write(tmp_path / "long", "1\n2\n3\n4\n"), shorter: write(tmp_path / "short", "1\n2\n")}
    message = fault(PairFiles(source=(paths["source"],), target=(paths["target"],)))
    assert message == (
        f"data.train: {paths[shorter]}:2 is its last line, but {paths[longer]} goes on at line 3; "
        "the two must have one translation a line"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "a\tb\nc\n", "a.tsv:2: no tab; each line has to be a source, a tab and its target"),
        ("a.tsv", "a\tb\tc\n", "a.tsv:1: 3 columns between tabs"),
        ("a.tsv.gz", "a\tb\n\n", "a.tsv.gz:2: an empty line; remove it"),
        ("a.tsv", b"a\tb\n\xff\tc\n", "a.tsv:2: not valid UTF-8 (byte 1 of the line)"),
        ("a.tsv", "", "a.tsv is empty"),
        ("a.jsonl", '{"source": "a", "target": "b"}\n{"source": \n', "a.jsonl:2: not valid JSON"),
        ("a.jsonl", "[" * 100_000, "a.jsonl:1: not valid JSON"),
        ("a.jsonl", '{"source": "a"}\n', "a.jsonl:1: no field 'target', only source; name the fields by data.columns."),
        ("a.jsonl", '{"source": "a", "target": 1}\n', "a.jsonl:1: not an object"),
        ("a.jsonl", '["a", "b"]\n', "a.jsonl:1: not an object"),
        ("a.jsonl", '{"source": "a", "target": "\\ud800"}\n', "a.jsonl:1: not an object"),
        ("a.txt", "a,b\n", "a.txt: the name must end in .tsv, .csv or .jsonl"),
        ("a.parquet.gz", "a,b\n", "a.parquet.gz: the name must end in .tsv, .csv or .jsonl"),
        ("a.csv", "source,target\n", "a.csv has the names of its columns alone"),
        ("a.csv", "source,target\na,b\nc\n", "a.csv:3: not the 2 columns that the first line names"),
        ("a.csv", 'source,target\na,"b\n', "a.csv:2: not valid CSV"),
        ("a.csv", "source,english\na,b\n", "a.csv:2: no field 'target', only source, english"),
        ("a.parquet", "no parquet", "a.parquet: not a parquet file that can be read"),
    ],
)
def test_faults_of_files_with_both_sides(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    complaint = fault(PairFiles(pairs=(write(tmp_path / name, content),)))
    assert complaint.startswith(f"data.train.pairs: {tmp_path}")
    assert message in complaint


def test_damaged_gzip_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(os.urandom(30_000).hex().encode() + b"\n")[:-20_000])
    assert "a.tsv.gz:1: damaged gzip file" in fault(PairFiles(pairs=(str(path),)))


def test_faults_of_either_side_name_its_setting(tmp_path: Path) -> None:
    good, bad, empty = (write(tmp_path / "good", "a\n"), write(tmp_path / "bad", b"\xff\n"), write(tmp_path / "no", ""))
    assert fault(PairFiles(source=(good,), target=(bad,))).startswith(f"data.train.target: {bad}:1: not valid UTF-8")
    assert fault(PairFiles(source=(bad,), target=(good,))).startswith(f"data.train.source: {bad}:1: not valid UTF-8")
    assert fault(PairFiles(source=(good,), target=(empty,))).startswith(f"data.train.target: {empty} is empty")


def test_what_is_no_file_is_told_before_anything_is_read(tmp_path: Path) -> None:
    bad, missing = write(tmp_path / "bad.tsv", "one column\n"), str(tmp_path / "missing.tsv")
    told = f"data.train.pairs: no such file: {missing}; check the path, or give data.train.pairs=FILE if it has moved"
    assert fault(PairFiles(pairs=(bad, missing))) == told
    with pytest.raises(
        UserError, match=r"make it by 'seqcritic prepare x', or give data\.test\.pairs=FILE if it has moved"
    ):
        list(read_pairs(PairFiles(pairs=(missing,)), "data.test", origin="seqcritic prepare x"))
    assert "is a folder" in fault(PairFiles(pairs=(bad, str(tmp_path))))
    pipe = tmp_path / "pipe.tsv"
    os.mkfifo(pipe)
    assert f"not a regular file: {pipe}" in fault(PairFiles(pairs=(bad, str(pipe))))
    assert fault(PairFiles()).startswith("data.train: no text given; add data.train.source=FILE")


def test_settings_want_a_target_file_for_every_source_file() -> None:
    with pytest.raises(ValueError, match=r"data\.valid: 2 source and 1 target files"):
        TranslationSettings.model_validate({"valid": {"source": "a,b", "target": "c"}})


def test_settings_want_room_for_all_bytes_among_subwords() -> None:
    with pytest.raises(ValueError, match=r"data\.target_tokens\.size: subwords need a size of at least 256"):
        TranslationSettings.model_validate({"target_tokens": {"kind": "subwords", "size": 255}})
