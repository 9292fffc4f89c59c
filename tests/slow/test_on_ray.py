"""A comparison on a Ray cluster of two machines: one is killed, one command is interrupted; the numbers stay.

Needs the extra `ray`, which `dev` does not bring.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import complaints, outcome, quiet_environment, run, start, updates_done, wait_until, write_recipe

ray = pytest.importorskip("ray")
METHODS = ("likelihood", "reinforce")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head that runs nothing, and two nodes with a core each."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield made
    made.shutdown()


def compare(recipe: Path, out: Path, *further: str) -> list[object]:
    return ["compare", recipe, "--methods", ",".join(METHODS), "--seeds", "2", "--out", out, *further]


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    phases = {"actor": {"updates": 1500}, "critic": {"updates": 10}, "train": {"updates": 100}}
    return write_recipe(tmp_path, phases=phases)


def outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    runs = [Path(f"seed-{seed}/{name}") for seed in (1, 2) for name in ("actor", *METHODS)]
    return {str(name): outcome(folder / name) for name in runs}


def both_train(folder: Path) -> bool:
    return all(updates_done(folder / f"seed-{seed}/actor") >= 100 for seed in (1, 2))


def resumed(folder: Path) -> int:
    logs = [(folder / f"seed-{seed}/actor.log").read_text() for seed in (1, 2)]
    return sum("resuming from" in log for log in logs)


def test_runs_of_a_lost_machine_go_on_elsewhere(
    recipe: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
):
    first, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    process = start(*compare(recipe, tmp_path / "there", "--on", "ray"))
    wait_until(lambda: both_train(tmp_path / "there"), process)
    cluster.remove_node(first, allow_graceful=False)
    _, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr
    assert resumed(tmp_path / "there") == 1
    here = run(*compare(recipe, tmp_path / "here"))
    assert here.returncode == 0, here.stderr
    assert outcomes(tmp_path / "there") == outcomes(tmp_path / "here")
    assert (tmp_path / "there/report.html").is_file()


def test_an_interrupted_command_leaves_checkpoints_and_resumes(
    recipe: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
):
    cluster.add_node(num_cpus=2)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    command = compare(recipe, tmp_path / "there", "--on", "ray")
    process = start(*command)
    wait_until(lambda: both_train(tmp_path / "there"), process)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT
    assert complaints(stderr) == ["seqcritic: stopped; the same command resumes"]
    logs = [(tmp_path / f"there/seed-{seed}/actor.log").read_text() for seed in (1, 2)]
    assert all("stopped; the same command resumes from" in log for log in logs)
    assert run(*command, env=quiet_environment()).returncode == 0
    assert resumed(tmp_path / "there") == 2
