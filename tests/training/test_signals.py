"""A run that is asked to stop writes a checkpoint, says so once, and goes on from there when started again."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from seqcritic.errors import Interrupted
from seqcritic.settings.io import load_recipe
from seqcritic.training.callbacks import Callback
from seqcritic.training.checkpoint import CheckpointFolder, read_description
from seqcritic.training.run import Run
from seqcritic.training.train import train
from support import SHORT, complaints, method_overrides, outcome, start, train_here, updates_done, wait_until


@pytest.mark.parametrize(("number", "update"), [(signal.SIGTERM, 8), (signal.SIGINT, 44)])
def test_a_signal_stops_the_run_at_a_checkpoint(
    number: signal.Signals, update: int, recipe: Path, finished_run: Path, tmp_path: Path
):
    overrides = method_overrides("actor-critic")
    process = start("train", recipe, "--out", tmp_path / "run", *overrides)
    wait_until(lambda: updates_done(tmp_path / "run") >= update, process)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    [line] = complaints(stderr)
    latest = CheckpointFolder(tmp_path / "run/checkpoints").latest()
    assert f"resumes from {latest}" in line
    assert stderr.splitlines()[-1] == line
    assert outcome(train_here(recipe, tmp_path / "run", *overrides)) == outcome(finished_run)


class Stopping(Callback):
    """Sends this process a signal when a phase begins, that is, just before its first evaluation."""

    def __init__(self, phase: str) -> None:
        self.stops_in = phase

    def on_phase(self, run: Run, phase: str) -> None:
        if phase == self.stops_in:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(("phase", "updates"), [("actor", 0), ("critic", 1), ("train", 0)])
def test_a_signal_is_handled_before_and_within_an_evaluation(
    phase: str, updates: int, recipe: Path, finished_run: Path, tmp_path: Path
):
    overrides = method_overrides("actor-critic")
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(Interrupted) as caught:
        train(load_recipe(recipe, overrides), tmp_path, [Stopping(phase)])
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    latest = CheckpointFolder(tmp_path / "checkpoints").latest()
    assert latest is not None
    # The critic's phase has no evaluation to break off, so its first update is made.
    assert read_description(latest)["progress"]["update"] == updates
    assert outcome(train_here(recipe, tmp_path, *overrides)) == outcome(finished_run)


def test_a_run_whose_comparison_has_died_stops_by_itself(recipe: Path, tmp_path: Path, monkeypatch):
    parent = subprocess.Popen(["sleep", "0"])
    parent.wait()
    monkeypatch.setenv("SEQCRITIC_PARENT", str(parent.pid))
    with pytest.raises(Interrupted) as caught:
        train(load_recipe(recipe, SHORT), tmp_path)
    assert caught.value.exit_code == 128 + signal.SIGTERM
    monkeypatch.setenv("SEQCRITIC_PARENT", str(os.getppid()))
    train_here(recipe, tmp_path, *SHORT)
