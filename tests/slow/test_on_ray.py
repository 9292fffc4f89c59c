"""A comparison on a Ray cluster of two machines: one is killed, one command is interrupted; the numbers stay.

Needs the extra `ray`, which `dev` does not bring.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import complaints, outcome, start, updates_done, write_recipe

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
    phases = {"actor": {"updates": 300}, "critic": {"updates": 10}, "train": {"updates": 40}}
    training = {"batch": 8, "evaluate_every": 50, "log_every": 2, "checkpoint_seconds": 0}
    return write_recipe(tmp_path, phases=phases, training=training)


def finish(process: subprocess.Popen[str]) -> None:
    _, stderr = process.communicate(timeout=900)
    assert process.returncode == 0, stderr


def outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    runs = [Path(f"seed-{seed}/{name}") for seed in (1, 2) for name in ("actor", *METHODS)]
    return {str(name): outcome(folder / name) for name in runs}


def wait_for_both(folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until both actors train; a cluster takes its time to start workers."""
    deadline = time.monotonic() + 600
    while any(updates_done(folder / f"seed-{seed}/actor") < 40 for seed in (1, 2)):
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)


def resumed(folder: Path) -> int:
    logs = [(folder / f"seed-{seed}/actor.log").read_text() for seed in (1, 2)]
    return sum("resuming from" in log for log in logs)


def test_runs_of_a_lost_machine_go_on_elsewhere(
    recipe: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
):
    first, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    process = start(*compare(recipe, tmp_path / "there", "--on", "ray"))
    wait_for_both(tmp_path / "there", process)
    cluster.remove_node(first, allow_graceful=False)
    finish(process)
    assert resumed(tmp_path / "there") == 1
    finish(start(*compare(recipe, tmp_path / "here")))
    assert outcomes(tmp_path / "there") == outcomes(tmp_path / "here")
    assert (tmp_path / "there/report.html").is_file()


def test_a_cluster_by_its_address(recipe: Path, tmp_path: Path):
    from ray.cluster_utils import Cluster

    pytest.importorskip("grpc")  # Ray's client
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    head = {"num_cpus": 2, "ray_client_server_port": port}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        address = f"ray://127.0.0.1:{port}"
        finish(start("compare", recipe, "--methods", "likelihood", "--out", tmp_path / "there", "--on", address))
        assert (tmp_path / "there/report.html").is_file()
    finally:
        cluster.shutdown()


def test_an_interrupted_command_leaves_checkpoints_and_resumes(
    recipe: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
):
    cluster.add_node(num_cpus=2)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    command = compare(recipe, tmp_path / "there", "--on", "ray")
    process = start(*command)
    wait_for_both(tmp_path / "there", process)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT
    assert complaints(stderr) == ["seqcritic: stopped; the same command resumes"]
    logs = [(tmp_path / f"there/seed-{seed}/actor.log").read_text() for seed in (1, 2)]
    assert all("stopped; the same command resumes from" in log for log in logs)
    finish(start(*command))
    assert resumed(tmp_path / "there") == 2
