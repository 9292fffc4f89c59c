"""A run that is killed and started again ends with the same bits as one that is not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqcritic.contracts.method_registry import registered_methods
from seqcritic.settings.io import load_recipe, with_method
from seqcritic.settings.methods import MIXED, method_labels
from seqcritic.training.learner import Learner
from support import (
    Fork,
    method_overrides,
    outcome,
    run,
    slow_but,
    start,
    train_here,
    updates_done,
    wait_until,
    write_recipe,
)

# One update in each phase; a method without a critic trains from update 20 on.
KILLED_AT = {"actor-critic": (8, 28, 48), "mixer": (8, 24, 32)}
# What draws more random numbers, holds more state, or names its weights differently.
OPTIONS = [
    "actor.encoder=window",
    "actor.dropout=0.2",
    "method.reward_dropout=held",
    "critic.dropout=0.2",
    "critic.tied=true",
    "method.samples=2",
    "method.sharpening=1.5",
    "method.target_samples=3",
    "method.kl_weight=0.05",
    "method.label_smoothing=0.1",
    "phases.actor.keep=last",
    "phases.critic.patience=9",
    "phases.train.final_learning_rate=0.001",
]
FILE_EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")
STRIDE = 6


def test_the_seed_decides_every_number(recipe: Path, finished_run: Path, tmp_path: Path):
    overrides = method_overrides("actor-critic")
    again = run("train", recipe, "--out", tmp_path / "again", *overrides)
    assert again.returncode == 0, again.stderr
    assert outcome(tmp_path / "again") == outcome(finished_run)
    other = outcome(train_here(recipe, tmp_path / "other", *overrides, "seed=2"))
    here = outcome(finished_run)
    assert all(other[name] != here[name] for name in here)


def test_three_kills_change_nothing(recipe: Path, finished_run: Path, tmp_path: Path):
    arguments = ("train", recipe, "--out", tmp_path / "killed", *method_overrides("actor-critic"))
    kill_in_every_phase(lambda: start(*arguments), tmp_path / "killed", "actor-critic")
    last = run(*arguments)
    assert last.returncode == 0, last.stderr
    assert "resuming from" in last.stderr
    assert outcome(tmp_path / "killed") == outcome(finished_run)


@pytest.mark.parametrize(
    ("label", "options"),
    [
        ("mixer", []),
        ("actor-critic", OPTIONS),
        ("actor-critic", ["critic.columns=12", "critic.residual_on=optimal-completion", "critic.embeddings=actor"]),
        ("actor-critic", ["method.correction=auto", "method.likelihood_weight=0.1"]),
        ("actor-critic", ["precision=bfloat16"]),
        *(
            pytest.param("actor-critic", options, marks=pytest.mark.slow)
            for options in (
                ["critic.from_actor=true", "critic.residual_on=lookahead"],
                ["critic.columns=12", "critic.from_actor=true", "critic.dropout=0.2"],
                ["actor.dropout=0.2", "method.reward_dropout=none", "method.likelihood_weight=0.1"],
            )
        ),
    ],
)
def test_kills_in_every_phase_change_nothing(label: str, options: list[str], recipe: Path, tmp_path: Path):
    overrides = [*method_overrides(label), *options]
    kill_in_every_phase(
        lambda: Fork("train", recipe, "--out", tmp_path / "killed", *overrides), tmp_path / "killed", label
    )
    killed = train_here(recipe, tmp_path / "killed", *overrides)
    assert outcome(killed) == outcome(train_here(recipe, tmp_path / "whole", *overrides))


@pytest.fixture(scope="module")
def translating(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A recipe that trains a window encoder for BLEU, and the actor and critic that every method starts from."""
    folder = tmp_path_factory.mktemp("window")
    updates = {"actor": 3, "critic": 3, "train": 5}
    recipe = write_recipe(
        folder,
        actor={"encoder": "window", "embedding": 8, "hidden": 8, "attention": 8},
        score={"name": "bleu"},
        phases={phase: {"updates": number, "learning_rate": 0.01} for phase, number in updates.items()},
        training={"batch": 4, "evaluate_every": 2, "log_every": 1, "checkpoint_seconds": 0},
    )
    return recipe, train_here(recipe, folder / "start", *method_overrides("actor-critic"), "phases.train.updates=0")


@pytest.mark.parametrize("label", slow_but([*registered_methods(), "actor-critic+likelihood"], method_labels()))
def test_a_kill_changes_nothing_in_any_method(label: str, translating: tuple[Path, Path], tmp_path: Path):
    recipe, trained = translating
    overrides = [*method_overrides(label), f"start.actor={trained}"]
    if registered_methods()[label.removesuffix(MIXED)].traits.scores:  # which cannot learn from BLEU
        overrides.append("score.name=edit-distance")
    if with_method(load_recipe(recipe, overrides), label).method.needs_critic:
        overrides.append(f"start.critic={trained}")
    killed = tmp_path / "killed"
    fork = Fork("train", recipe, "--out", killed, *overrides, before=lambda: die_at_update(4))
    assert fork.wait() == -signal.SIGKILL
    assert updates_done(killed) == 3
    assert outcome(train_here(recipe, killed, *overrides)) == outcome(
        train_here(recipe, tmp_path / "whole", *overrides)
    )


def test_a_kill_between_any_two_file_operations_changes_nothing(tmp_path: Path):
    phases = {phase: {"updates": 1, "learning_rate": 0.01} for phase in ("actor", "critic", "train")}
    recipe = write_recipe(tmp_path, phases=phases)
    whole = outcome(train_here(recipe, tmp_path / "whole"))
    operations = range(1, 1000, STRIDE)
    for operation in operations:
        folder = tmp_path / f"killed-{operation}"
        fork = Fork("train", recipe, "--out", folder, before=lambda: die_at_file_operation(operation, folder))  # noqa: B023
        if fork.wait() == 0:
            break
        assert fork.code == -signal.SIGKILL
        assert outcome(train_here(recipe, folder)) == whole, f"killed at file operation {operation}"
    assert 10 < operations.index(operation) < len(operations) - 1, "too few operations were tried"


def kill_in_every_phase(begin: Callable[[], object], folder: Path, label: str) -> None:
    """Begin a run three times and kill it each time in another phase."""
    for update in KILLED_AT[label]:
        process = begin()
        wait_until(lambda update=update: updates_done(folder) >= update, process)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert not (folder / "model").exists()


def die_at_update(number: int) -> None:
    """Let this process kill itself where it would make its n-th update."""
    updates, left = Learner.update, number

    def count(*arguments: Any, **options: Any) -> dict[str, float]:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return updates(*arguments, **options)

    Learner.update = count  # type: ignore[method-assign]


def die_at_file_operation(operation: int, folder: Path) -> None:
    """Let this process kill itself before the n-th operation on a file of the folder."""
    left = operation

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in FILE_EVENTS and str(folder) in str(arguments[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
