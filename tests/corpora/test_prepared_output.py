"""The folder of the sets: complete or not there, one process at a time, and never overwritten."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from small_archives import iwslt_files, prepare_here, printed, write_folder, write_tar

from seqcritic.corpora.corpus import Built
from seqcritic.corpora.sets import Sets
from seqcritic.corpora.table import CORPORA
from seqcritic.errors import UserError
from seqcritic.files import seal


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_tar(tmp_path / "de-en.tgz", iwslt_files())


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(name: str, out: Path, source: Path | None) -> str:
    with pytest.raises(UserError) as caught:
        prepare_here(name, out, source)
    return str(caught.value)


def test_the_same_command_again_changes_nothing(archive: Path, tmp_path: Path):
    prepare_here("iwslt14", tmp_path / "out", archive)
    before = snapshot(tmp_path / "out")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    archive.rename(tmp_path / "moved.tgz")
    again = prepare_here("iwslt14", tmp_path / "out", tmp_path / "moved.tgz")
    assert not again.is_new
    assert printed(again).startswith("iwslt14 was prepared before, from the same source, in ")
    assert snapshot(tmp_path / "out") == before
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == times


def test_two_folders_from_one_archive_are_equal(archive: Path, tmp_path: Path):
    prepare_here("iwslt14", tmp_path / "a", archive)
    prepare_here("iwslt14", tmp_path / "b", archive)
    assert snapshot(tmp_path / "a") == snapshot(tmp_path / "b")


def test_other_sources_and_corpora_are_refused(archive: Path, tmp_path: Path):
    out = tmp_path / "out"
    prepare_here("iwslt14", out, archive)
    before = snapshot(out)
    other = write_tar(tmp_path / "other.tgz", iwslt_files("anders\n", "other\n"))
    assert "holds sets prepared from other files" in refused("iwslt14", out, other)
    assert "holds sets of iwslt14, not of wmt14-en-fr" in refused("wmt14-en-fr", out, tmp_path)
    assert "not from the network; name that as the source" in refused("iwslt14", out, None)
    assert snapshot(out) == before


def test_sets_that_were_changed_are_refused(archive: Path, tmp_path: Path):
    out = tmp_path / "out"
    prepare_here("iwslt14", out, archive)
    with (out / "train.de").open("a", encoding="utf-8") as file:
        file.write("one more\n")
    assert "train.de is not as prepared.json says" in refused("iwslt14", out, archive)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": {"train.de": 3}}'])
def test_a_damaged_record_is_refused(content: str, archive: Path, tmp_path: Path):
    write_folder(tmp_path / "out", {"prepared.json": content})
    assert "prepared.json is damaged" in refused("iwslt14", tmp_path / "out", archive)


def test_sets_of_another_version_are_refused(archive: Path, tmp_path: Path):
    path = tmp_path / "out/prepared.json"
    prepare_here("iwslt14", tmp_path / "out", archive)
    record = json.loads(path.read_text(encoding="utf-8"))
    record["settings"]["maximum_length"] = 175
    path.write_text(json.dumps(record), encoding="utf-8")
    assert "prepared.json is damaged" in refused("iwslt14", tmp_path / "out", archive), "its digest is another's"
    path.write_text(json.dumps(seal(record)), encoding="utf-8")
    assert "holds sets made with other settings" in refused("iwslt14", tmp_path / "out", archive)


def test_files_of_another_origin_are_not_overwritten(archive: Path, tmp_path: Path):
    write_folder(tmp_path / "out", {"train.de": "mine\n"})
    assert "has a train.de but no prepared.json" in refused("iwslt14", tmp_path / "out", archive)
    assert snapshot(tmp_path / "out") == {"train.de": b"mine\n"}


def test_an_interrupted_command_leaves_nothing(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def build(files: Mapping[str, Path], sets: Sets) -> Built:
        sets.write("train", "halb", "half")
        raise KeyboardInterrupt

    monkeypatch.setitem(CORPORA, "iwslt14", replace(CORPORA["iwslt14"], build=build))
    with pytest.raises(KeyboardInterrupt):
        prepare_here("iwslt14", tmp_path / "out", archive)
    assert not (tmp_path / "out").exists()


def test_what_a_killed_command_left_is_removed(archive: Path, tmp_path: Path):
    write_folder(tmp_path / "out", {".preparing/sets/train.de": "half\n", ".preparing/prepared.json.partial": "{"})
    prepare_here("iwslt14", tmp_path / "out", archive)
    prepare_here("iwslt14", tmp_path / "whole", archive)
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "whole")


@pytest.mark.parametrize("num_moved", [0, 1, 4])
def test_a_command_killed_while_it_moved_its_files_is_finished(num_moved: int, archive: Path, tmp_path: Path):
    out, whole = tmp_path / "out", tmp_path / "whole"
    prepare_here("iwslt14", whole, archive)
    (out / ".preparing/sets").mkdir(parents=True)
    names = sorted(path.name for path in whole.iterdir() if path.name != "prepared.json")
    for number, name in enumerate(names):
        shutil.copy(whole / name, out / name if number < num_moved else out / ".preparing/sets" / name)
    shutil.copy(whole / "prepared.json", out / ".preparing/prepared.json")
    assert not prepare_here("iwslt14", out, archive).is_new
    assert snapshot(out) == snapshot(whole)


def test_one_process_at_a_time(archive: Path, tmp_path: Path):
    (tmp_path / "out").mkdir()
    lock = os.open(tmp_path / "out", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another process is preparing sets" in refused("iwslt14", tmp_path / "out", archive)
    finally:
        os.close(lock)
    assert prepare_here("iwslt14", tmp_path / "out", archive).is_new


def test_out_must_be_a_folder(archive: Path, tmp_path: Path):
    (tmp_path / "out").write_text("a file", encoding="utf-8")
    assert refused("iwslt14", tmp_path / "out", archive).startswith("out: cannot use ")


def test_unknown_corpora_are_named(tmp_path: Path):
    assert "choose one of iwslt14, wmt14-en-fr, one-billion-word" in refused("iwslt15", tmp_path / "out", None)
