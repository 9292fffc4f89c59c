"""A tiny task and a run that has learnt it, made once for all tests."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from seqcritic.cli import main
from seqcritic.progress import log
from support import Refusal, complaints, method_overrides, train_here, write_recipe

# One thread in this process and in those the tests start: on busy cores more of them are many times slower.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
# A shell makes what it starts in the background deaf to Ctrl-C, and its children too; the tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what the tests cache away from the user's own cache, for this process and those it starts.

    The workers of pytest-xdist share one folder, so that kernels are compiled once.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    os.environ.setdefault("SEQCRITIC_CACHE", str(shared / "cache"))


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of a task that takes two seconds."""
    return write_recipe(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def finished_run(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of actor-critic; copy it before changing it."""
    return train_here(recipe, tmp_path_factory.mktemp("runs") / "finished", *method_overrides("actor-critic"))


@pytest.fixture(scope="session")
def lively_run(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without updates whose large random weights answer every line differently."""
    out = tmp_path_factory.mktemp("runs") / "lively"
    none = [f"phases.{phase}.updates=0" for phase in ("actor", "critic", "train")]
    return train_here(recipe, out, *none, "actor.initial_range=1", "actor.hidden=16", *method_overrides("likelihood"))


class Listener(logging.Handler):
    """Keeps the lines that are logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What is logged, with all details; a handler of the user's own."""
    listener, level = Listener(), log.level
    log.addHandler(listener)
    log.setLevel(logging.DEBUG)
    yield listener.lines
    log.removeHandler(listener)
    log.setLevel(level)


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Refusal:
    """A function that runs a command which must be refused, and returns the one line that says why."""

    def refuse(*arguments: object) -> str:
        code = main([str(argument) for argument in arguments])
        lines = complaints(capsys.readouterr().err)
        assert code == 2
        assert len(lines) == 1
        return lines[0]

    return refuse
