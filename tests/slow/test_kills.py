"""Fifty kills at random times, for every method, change no bit of where a run ends."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from support import METHODS, method_overrides, outcome, run, start, train_here, updates_done, wait_until, write_recipe

NUM_KILLS = 50
MOST_UPDATES = 10  # made by one process before it is killed


@pytest.mark.parametrize("label", METHODS)
def test_fifty_kills_change_nothing(label: str, tmp_path: Path):
    phases = {"actor": 250, "critic": 250, "train": 500}
    recipe = write_recipe(
        tmp_path,
        phases={phase: {"updates": updates, "learning_rate": 0.01} for phase, updates in phases.items()},
        training={"batch": 8, "evaluate_every": 20, "log_every": 1, "checkpoint_seconds": 0.02},
    )
    overrides = method_overrides(label)
    killed = tmp_path / "killed"
    randomness = random.Random(label)
    for _ in range(NUM_KILLS):
        kill_at_random(randomness, recipe, killed, overrides)
    last = run("train", recipe, "--out", killed, *overrides)
    assert last.returncode == 0, last.stderr
    assert "resuming from" in last.stderr
    assert outcome(killed) == outcome(train_here(recipe, tmp_path / "whole", *overrides))


def kill_at_random(randomness: random.Random, recipe: Path, folder: Path, overrides: list[str]) -> None:
    """Start the run and kill it: mostly after some updates and part of one, sometimes while it starts."""
    process = start("train", recipe, "--out", folder, *overrides)
    if randomness.random() < 0.1:
        time.sleep(randomness.uniform(0, 2))
    else:
        assert process.stderr is not None
        next(line for line in process.stderr if line.startswith("phase "))  # it begins, or goes on, to train
        goal = updates_done(folder) + randomness.randint(0, MOST_UPDATES)
        wait_until(lambda: updates_done(folder) >= goal, process)
        time.sleep(randomness.uniform(0, 0.03))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
