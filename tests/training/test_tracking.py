"""metrics.jsonl: cut back to the checkpoint on resume, readable after a kill, refused when damaged."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from seqcritic.errors import UserError
from seqcritic.training.tracking import METRICS_FILE, Metrics, read_metrics

PLACE = {"kind": "train", "phase": "actor", "total_updates": 1, "compute": 1.0, "seconds": 0.5}


def test_records_after_the_checkpoint_are_cut_off(tmp_path: Path):
    metrics = Metrics(tmp_path, 0)
    metrics.write(PLACE | {"update": 1})
    kept = metrics.offset
    metrics.write(PLACE | {"update": 2})
    with metrics.path.open("ab") as stream:
        stream.write(b'{"update": 3, "los')
    assert read_metrics(tmp_path) == [PLACE | {"update": 1}, PLACE | {"update": 2}]
    Metrics(tmp_path, kept).write(PLACE | {"update": 2.5})
    assert read_metrics(tmp_path) == [PLACE | {"update": 1}, PLACE | {"update": 2.5}]


def test_no_metrics_are_no_records(tmp_path: Path):
    assert read_metrics(tmp_path) == []


def test_a_damaged_record_is_named_by_its_line(tmp_path: Path):
    record = json.dumps(PLACE | {"update": 1}).encode()
    (tmp_path / METRICS_FILE).write_bytes(record + b"\n\x00\xff\n" + record + b"\n")
    with pytest.raises(UserError, match=r"metrics\.jsonl:2: the record is damaged"):
        read_metrics(tmp_path)


def test_metrics_shorter_than_the_checkpoint_are_refused(tmp_path: Path):
    (tmp_path / METRICS_FILE).write_bytes(b'{"update": 1}\n')
    with pytest.raises(UserError, match="lacks records made before the checkpoint"):
        Metrics(tmp_path, 15)
    assert (tmp_path / METRICS_FILE).read_bytes() == b'{"update": 1}\n'


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path):
    (tmp_path / METRICS_FILE).mkdir()
    with pytest.raises(UserError, match=r"cannot write .*metrics\.jsonl: Is a directory"):
        Metrics(tmp_path, 0)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    metrics = Metrics(tmp_path, 0)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UserError, match=r"cannot write .*metrics\.jsonl: No space left on device"):
        metrics.write({"update": 1})
