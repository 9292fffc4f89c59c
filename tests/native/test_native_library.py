"""Compiling the kernels: once for all processes, and doing without where that fails."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqcritic.native import library
from seqcritic.native.library import NoLibrary, find_compiler, load
from support import quiet_environment, run

LOAD = "from seqcritic.native.library import load; load('float32'); print('loaded')"
LEARN = """
import torch
from seqcritic.tensors.packing import pack
from seqcritic.models.gru.recurrence import gated_scan
from seqcritic.native.kernels import describe, kernels_for
print(describe(), kernels_for(torch.zeros(1)) is None)
packing = pack(torch.ones(2, 2) > 0)
assert gated_scan(torch.zeros(2, 4, 9), torch.ones(2, 9, 3), torch.ones(2, 9), packing).isfinite().all()
"""


def has_compiler() -> bool:
    try:
        return bool(find_compiler())
    except NoLibrary:
        return False


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C compiler here")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "native"


def fake_compiler(folder: Path, script: str) -> Path:
    folder.mkdir()
    compiler = folder / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    compiler.chmod(0o755)
    return folder


@needs_compiler
def test_two_processes_at_once_make_one_library(folder):
    environment = quiet_environment() | {"SEQCRITIC_CACHE": os.environ["SEQCRITIC_CACHE"]}
    command = [sys.executable, "-c", LOAD]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in started] == ["loaded\n", "loaded\n"]
    assert [path.suffix for path in folder.iterdir()] == [".so"]


@needs_compiler
def test_a_kept_library_is_loaded_and_a_damaged_one_made_again(folder, monkeypatch):
    load.__wrapped__("float32")
    (kept,) = folder.iterdir()
    made = kept.stat().st_mtime_ns
    load.__wrapped__("float32")
    assert kept.stat().st_mtime_ns == made
    other = folder / library.file_name("float64", find_compiler()[1])
    other.write_bytes(b"not a library")
    assert isinstance(load.__wrapped__("float64"), ctypes.CDLL)
    assert other.stat().st_size > 1000


@needs_compiler
def test_without_a_folder_to_keep_it_in_the_library_is_made_for_the_process(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path / "file"))
    assert isinstance(load.__wrapped__("float32"), ctypes.CDLL)


def test_another_compiler_or_type_gives_another_name():
    names = {library.file_name(kind, version) for kind in ("float32", "float64") for version in ("cc 1", "cc 2")}
    assert len(names) == 4


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "no C compiler"),
        ("exit 1", "no C compiler"),
        ('test "$1" = --version || { echo "out of order" >&2; exit 1; }', "fails: out of order"),
        ("exit 0", "cannot be loaded"),
    ],
    ids=["missing", "broken", "failing", "writing nothing"],
)
def test_without_a_working_compiler_pytorch_does_the_work(script, why, folder, tmp_path):
    tools = tmp_path / "tools"
    if script is None:
        tools.mkdir()
    else:
        fake_compiler(tools, script)
    environment = quiet_environment() | {"SEQCRITIC_CACHE": os.environ["SEQCRITIC_CACHE"], "PATH": str(tools)}
    told = subprocess.run([sys.executable, "-c", LEARN], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("no, ")
    assert why in told.stdout
    assert told.stdout.endswith("True\n")
    assert not folder.exists() or not list(folder.glob("*.tmp"))


def test_the_environment_says_whether_kernels_are_used():
    assert (
        "native kernels: no, SEQCRITIC_NATIVE=0"
        in run("env", env=quiet_environment() | {"SEQCRITIC_NATIVE": "0"}).stdout
    )
