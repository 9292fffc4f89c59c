"""Two processes with a batch of B do what one does with 2B, resume exactly, and end together."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from process_group import ProcessGroup
from run_differences import differences, losses
from seqcritic import draws
from seqcritic.contracts.method import Outcome
from seqcritic.draws import Shard
from seqcritic.errors import UserError
from seqcritic.settings.io import load_recipe
from seqcritic.training import learner as learning
from seqcritic.training.checkpoint import CheckpointFolder
from seqcritic.training.distributed import Processes
from support import (
    METHODS,
    PATIENCE_SECONDS,
    Refusal,
    method_overrides,
    outcome,
    quiet_environment,
    records,
    slow_but,
    train_here,
    updates_done,
    wait_until,
    write_recipe,
)

QUICK = ("actor-critic+likelihood", "ppo", "minimum-risk", "reinforce+likelihood", "beam-search-optimization")
LABELS = (*METHODS, "reinforce+likelihood", "reinforce-critic+likelihood")
PHASES = ["phases.actor.updates=14", "phases.critic.updates=12", "phases.train.updates=24"]  # 50 updates
FEW = ["phases.actor.updates=4", "phases.critic.updates=4", "phases.train.updates=8"]
RARELY = ["training.checkpoint_seconds=1000", "training.log_every=1", "training.evaluate_every=50"]


def train_together(recipe: Path, out: Path, *overrides: str, **options: object) -> Path:
    group = ProcessGroup(out, "train", recipe, "--out", out, *overrides, **options)
    assert group.wait() == [0, 0], group.complaints()
    return out


def compare(recipe: Path, folder: Path, overrides: list[str], **options: object) -> tuple[float, float]:
    """Return how far one process with a batch of 8 and two with 4 each are apart."""
    one = train_here(recipe, folder / "one", *overrides, *RARELY, "training.batch=8")
    two = train_together(recipe, folder / "two", *overrides, *RARELY, "training.batch=4", **options)
    assert records(one)[-1]["examples"] == records(two)[-1]["examples"] > 0
    return differences(one, two)


@pytest.mark.parametrize("label", slow_but(QUICK, LABELS))
def test_two_processes_do_what_one_does_with_twice_the_batch(label: str, recipe: Path, tmp_path: Path):
    dropout = ["actor.dropout=0.2", "critic.dropout=0.2"]
    overrides = [*method_overrides(label), *PHASES, *dropout, "precision=float64"]
    assert max(compare(recipe, tmp_path, overrides)) < 1e-9


def test_they_weigh_the_correction_by_the_gradients_of_all(recipe: Path, tmp_path: Path):
    overrides = [*method_overrides("actor-critic+likelihood"), *PHASES, "precision=float64", "method.correction=auto"]
    assert max(compare(recipe, tmp_path, overrides)) < 1e-9
    weights_found = [record["correction"] for record in records(tmp_path / "two") if "correction" in record]
    assert weights_found[0] == 1.0 != weights_found[-1]


def test_they_do_so_in_single_precision_and_with_several_samples(recipe: Path, tmp_path: Path):
    overrides = [*method_overrides("actor-critic+likelihood"), *PHASES, "method.samples=2", "training.clip_norm=0.5"]
    of_losses, of_weights = compare(recipe, tmp_path, overrides)
    assert of_losses < 1e-5
    # Adam divides a gradient by its own size: where the gradient is rounding error, so is the step.
    assert of_weights < 0.05


def test_they_do_so_with_narrow_products(recipe: Path, tmp_path: Path):
    overrides = [*method_overrides("likelihood"), "phases.train.updates=20", "precision=bfloat16"]
    compare(recipe, tmp_path, overrides)
    one, two = (
        [value for name, value in losses(tmp_path / run) if name == "likelihood_loss"] for run in ("one", "two")
    )
    assert one[0] == pytest.approx(two[0], rel=1e-6)  # the sums of the same products in another order
    # Then a weight that differs in its last digit may be rounded to the neighbouring bfloat16, 0.4 % away.
    assert one == pytest.approx(two, rel=1e-3)


def test_batches_that_do_not_divide_are_sharded_too(tmp_path: Path):
    # 37 pairs make 5 batches of 7 or 8, by length: shares of 3 and 4, padded to different widths.
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    lines = [f"{' '.join(words[: 1 + n % 7])}\t{' '.join(words[n % 5 : n % 5 + 1 + n % 3])}\n" for n in range(37)]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(lines), encoding="utf-8")
    split = {"pairs": str(pairs)}
    recipe = write_recipe(
        tmp_path,
        data={"task": "translation", "train": split, "valid": split, "test": split},
        score={"name": "bleu"},
    )
    overrides = [*method_overrides("actor-critic"), *PHASES, "precision=float64", "training.train_examples=5"]
    assert max(compare(recipe, tmp_path, overrides)) < 1e-9
    assert "train_score" in dict(losses(tmp_path / "two"))


def draw_alone() -> None:
    """Let a process draw for its own examples only, as if it were alone."""
    draws.ShardedGenerator.shard = property(lambda self: None, lambda self, value: None)


def weigh_wrongly() -> None:
    """Let a process sum gradients as if it held every example."""
    Shard.fraction = property(lambda self: 1.0)


@pytest.mark.parametrize("fault", [draw_alone, weigh_wrongly])
def test_the_comparison_notices_faults(fault: Callable[[], None], recipe: Path, tmp_path: Path):
    overrides = [*method_overrides("reinforce"), *FEW, "precision=float64"]
    assert min(compare(recipe, tmp_path, overrides, before={0: fault, 1: fault})) > 1e-3


def test_a_run_of_two_resumes_exactly_and_only_with_two(recipe: Path, tmp_path: Path, refusal: Refusal):
    overrides = [*method_overrides("actor-critic"), "actor.dropout=0.2", "training.batch=4"]
    whole = train_together(recipe, tmp_path / "whole", *overrides)
    command = ("train", recipe, "--out", tmp_path / "run", *overrides)
    group = ProcessGroup(tmp_path / "killed", *command)
    wait_until(lambda: updates_done(tmp_path / "run") >= 8, group)
    group.kill(0, 1)
    assert group.wait() == [-signal.SIGKILL, -signal.SIGKILL]
    assert "began with 2 process(es), not 1" in refusal(*command)
    group = ProcessGroup(tmp_path / "stopped", *command)
    wait_until(lambda: updates_done(tmp_path / "run") >= 44, group)
    group.kill(1, number=signal.SIGTERM)
    assert group.wait() == [128 + signal.SIGTERM] * 2
    [line] = group.complaints()
    assert f"resumes from {CheckpointFolder(tmp_path / 'run/checkpoints').latest()}" in line
    assert outcome(train_together(recipe, tmp_path / "run", *overrides)) == outcome(whole)


def spoil_update(number: int, error: Exception | None) -> Callable[[], None]:
    """Return what makes the losses of a process infinite, or raises an error, from an update on."""

    def spoil() -> None:
        honest = learning.Learner._outcomes
        calls = 0

        def outcomes(self: learning.Learner, *arguments: object) -> Iterator[Outcome]:
            nonlocal calls
            calls += 1
            for found in honest(self, *arguments):
                if calls >= number and error is not None:
                    raise error
                yield Outcome(found.loss * math.inf, found.measurements) if calls >= number else found

        learning.Learner._outcomes = outcomes

    return spoil


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("error", "code", "says"),
    [(None, 3, "the loss is not finite at update 3"), (UserError("no such word"), 2, "no such word")],
)
def test_a_fault_of_one_process_ends_all_with_one_line(
    rank: int, error: Exception | None, code: int, says: str, recipe: Path, tmp_path: Path
):
    group = ProcessGroup(
        tmp_path / "log", "train", recipe, "--out", tmp_path / "run", before={rank: spoil_update(3, error)}
    )
    codes = group.wait()
    assert codes[rank] == code
    assert codes[1 - rank] == 4
    [line] = group.complaints()
    assert says in line


def test_what_all_see_is_said_once(recipe: Path, tmp_path: Path):
    group = ProcessGroup(tmp_path / "log", "train", recipe, "--out", tmp_path / "run", "data.train=nowhere.txt")
    assert 2 in group.wait()
    [line] = group.complaints()
    assert "nowhere.txt" in line


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the worker in /proc")
def test_torchrun_ends_when_a_worker_is_killed_and_resumes(recipe: Path, tmp_path: Path):
    out = tmp_path / "run"
    overrides = [*method_overrides("likelihood"), "training.batch=4"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "seqcritic"]
    process = subprocess.Popen(
        [*launcher, "train", recipe, "--out", out, *overrides, "phases.train.updates=100000"],
        stderr=subprocess.PIPE,
        env=quiet_environment(),
        text=True,
    )
    wait_until(lambda: updates_done(out) >= 6, process)
    os.kill(worker_of(process.pid, rank=1), signal.SIGKILL)
    _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode != 0
    latest = CheckpointFolder(out / "checkpoints").latest()
    [line] = [line for line in stderr.splitlines() if line.startswith("seqcritic: ")]
    assert str(out) in line
    assert f"the same command resumes from {latest}" in line
    before = updates_done(out)
    group = ProcessGroup(tmp_path / "log", "train", recipe, "--out", out, *overrides, "phases.train.updates=100000")
    wait_until(lambda: updates_done(out) > before, group)
    group.kill(0, number=signal.SIGINT)
    assert group.wait() == [128 + signal.SIGINT] * 2


def worker_of(launcher: int, rank: int) -> int:
    """Return the process of a rank that torchrun has started."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
            if f"RANK={rank}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return int(pid)
    raise AssertionError("torchrun has no such worker")


def test_shards_are_whole_disjoint_and_almost_equal():
    for total in range(5, 30):
        shards = [Processes(rank, 5).shard(total) for rank in range(5)]
        assert [row for shard in shards for row in range(shard.first, shard.last)] == list(range(total))
        assert max(map(len, shards)) - min(map(len, shards)) <= 1
        assert sum(shard.fraction for shard in shards) == pytest.approx(1)
    with pytest.raises(UserError, match="too small for 5 processes"):
        Processes(0, 5).shard(4)


def test_processes_draw_their_rows_of_the_same_numbers():
    def numbers(shard: Shard | None) -> Tensor:
        generator = draws.ShardedGenerator()
        generator.manual_seed(3)
        generator.shard = shard
        rows = 10 if shard is None else len(shard)
        return draws.draw_numbers(generator, 7, 2 * rows)

    shards = [Processes(rank, 3).shard(10) for rank in range(3)]
    assert torch.equal(torch.cat([numbers(shard) for shard in shards], dim=1), numbers(None))


@pytest.mark.parametrize("command", [["compare", "demo"], ["recipes"]])
def test_other_commands_run_in_one_process(command: list[str], refusal: Refusal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "only train may be started by torchrun" in refusal(*command)


def test_a_part_of_a_batch_is_padded_no_longer_than_needed(recipe: Path):
    from seqcritic.data.task import build_task

    batch = build_task(load_recipe(recipe).data).training_batch(0, 12, 1)
    for first, last in ((0, 12), (0, 3), (3, 12)):
        part = batch.part(first, last)
        assert len(part) == last - first
        for row in range(len(part)):
            for side, mask in (("sources", "source_mask"), ("references", "reference_mask")):
                mine, whole = getattr(part, side)[row], getattr(batch, side)[first + row]
                assert mine[getattr(part, mask)[row]].tolist() == whole[getattr(batch, mask)[first + row]].tolist()
        assert bool(part.source_mask.any(dim=0).all())
        assert bool(part.reference_mask.any(dim=0).all())
