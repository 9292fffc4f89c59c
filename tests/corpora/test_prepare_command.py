"""The command line of `seqcritic prepare`."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from small_archives import iwslt_files, write_tar

from seqcritic.cli import build_parser, main
from seqcritic.corpora.download import Download
from seqcritic.corpora.table import CORPORA
from support import Refusal


def test_prepare_prints_the_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    archive = write_tar(tmp_path / "de-en.tgz", iwslt_files())
    command = ["prepare", "iwslt14", "--from", str(archive), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "train              about 153,000      4" in capsys.readouterr().out
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("iwslt14 was prepared before, from the same source, in ")


def test_faults_are_one_line(tmp_path: Path, refusal: Refusal):
    complaint = refusal("prepare", "iwslt14", "--from", tmp_path / "none", "--out", tmp_path / "out")
    assert complaint.startswith("seqcritic: source: no such file or folder: ")


def test_without_a_network_the_address_is_named(tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/r13.tar.gz"
        corpus = replace(CORPORA["one-billion-word"], downloads=(Download(address),))
        monkeypatch.setitem(CORPORA, "one-billion-word", corpus)
        # The port stays taken and nobody listens on it, so no other process can answer.
        complaint = refusal("prepare", "one-billion-word", "--out", tmp_path / "out")
    assert complaint.startswith(f"seqcritic: cannot fetch {address}: ")


def test_the_parser_knows_all_corpora(capsys: pytest.CaptureFixture[str]):
    for name in CORPORA:
        assert build_parser().parse_args(["prepare", name, "--out", "x"]).corpus == name
    with pytest.raises(SystemExit):
        build_parser().parse_args(["prepare", "iwslt15", "--out", "x"])
    assert "iwslt15" in capsys.readouterr().err
