"""Runs placed by a cluster, with a cluster that is a fake; tests/slow has a real one, of which a machine is killed."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from seqcritic.cli import main
from seqcritic.comparing import on_ray
from seqcritic.files import acquire_lock
from support import Refusal, outcome, start_in_forks, write_recipe


class FakeRay(ModuleType):
    """Runs every task at once, in this process."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.addresses: list[str | None] = []
        self.options: list[dict[str, Any]] = []
        self.open = False
        cancelled, fault = type("TaskCancelledError", (Exception,), {}), type("RayError", (Exception,), {})
        self.exceptions = SimpleNamespace(TaskCancelledError=cancelled, RayError=fault)

    def init(self, address: str | None, **options: Any) -> None:
        self.addresses.append(address)
        self.open = True

    def shutdown(self) -> None:
        self.open = False

    def remote(self, function: Callable[..., int]) -> SimpleNamespace:
        def options(**given: Any) -> SimpleNamespace:
            self.options.append(given)
            return SimpleNamespace(remote=lambda *arguments: self._run(function, arguments))

        return SimpleNamespace(options=options)

    def _run(self, function: Callable[..., int], arguments: tuple[str, ...]) -> object:
        assert self.open
        try:
            return function(*arguments)
        except OSError as error:
            return self.exceptions.RayError(f"a traceback\nof lines\nFileNotFoundError: {error}")

    def wait(self, tasks: list[object], timeout: float) -> tuple[list[object], list[object]]:
        return tasks, []

    def get(self, task: object) -> object:
        if isinstance(task, Exception):
            raise task
        return task


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(on_ray, "POLL_SECONDS", 0.01)
    return fake


@pytest.fixture
def short_recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path, phases={phase: {"updates": 4} for phase in ("actor", "critic", "train")})


def test_a_cluster_trains_the_same_runs(
    short_recipe: Path, tmp_path: Path, ray: FakeRay, monkeypatch: pytest.MonkeyPatch
):
    started = start_in_forks(monkeypatch)
    command = ["compare", str(short_recipe), "--methods", "likelihood,reinforce", "--out"]
    assert main([*command, str(tmp_path / "there"), "--on", "ray"]) == 0
    assert ray.addresses == [None]
    assert not ray.open
    assert started == ["actor", "likelihood", "reinforce"]
    assert [given["num_cpus"] for given in ray.options] == [1, 1, 1]
    assert [given["num_gpus"] for given in ray.options] == [0, 0, 0]
    assert main([*command, str(tmp_path / "here")]) == 0
    for name in ("actor", "likelihood", "reinforce"):
        assert outcome(tmp_path / "there/seed-1" / name) == outcome(tmp_path / "here/seed-1" / name)
    assert (tmp_path / "there/report.html").is_file()


def test_a_machine_that_does_not_share_the_folder_is_told_in_one_line(
    short_recipe: Path, tmp_path: Path, ray: FakeRay, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
):
    honest = on_ray.write_config
    monkeypatch.setattr(on_ray, "write_config", lambda *plan: honest(*plan).with_name("unseen.yaml"))
    line = refusal("compare", short_recipe, "--methods", "likelihood", "--out", tmp_path / "out", "--on", "ray")
    assert "ended with exit code 2: seqcritic: the cluster could not train it: FileNotFoundError" in line
    assert "share these folders" in line


def test_a_cluster_without_seqcritic_is_told_in_one_line(
    short_recipe: Path, tmp_path: Path, ray: FakeRay, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
):
    def refuse(function: Callable[..., int], arguments: tuple[str, ...]) -> None:
        raise ModuleNotFoundError("No module named 'seqcritic'")  # of the client, as it was raised there

    monkeypatch.setattr(ray, "_run", refuse)
    line = refusal("compare", short_recipe, "--methods", "likelihood", "--out", tmp_path / "out", "--on", "ray")
    assert line.endswith("on: the cluster does not take runs: ModuleNotFoundError: No module named 'seqcritic'")


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("ray://127.0.0.1:{port}", "on: no Ray cluster answers at ray://127.0.0.1:{port} (Connection refused)"),
        ("ray://127.0.0.1", "on: 'ray://127.0.0.1' is no address; give ray://HOST:PORT"),
        ("ray://127.0.0.1:many", "is no address; give ray://HOST:PORT"),
        ("spark", "on: 'spark' is no cluster; give ray, or ray://HOST:PORT"),
    ],
)
def test_addresses_where_no_cluster_is(
    address: str, complaint: str, short_recipe: Path, tmp_path: Path, ray: FakeRay, refusal: Refusal
):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listened at: nobody answers, and nobody else takes it
        port = held.getsockname()[1]
        out = tmp_path / "out"
        line = refusal("compare", short_recipe, "--out", out, "--on", address.format(port=port))
    assert complaint.format(port=port) in line
    assert not out.exists()
    assert ray.addresses == []


def test_the_environment_may_name_the_cluster(
    short_recipe: Path, tmp_path: Path, ray: FakeRay, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        line = refusal("compare", short_recipe, "--out", tmp_path / "out", "--on", "ray")
    assert f"no Ray cluster answers at {address}" in line


def test_a_missing_package_is_told_with_its_extra(
    short_recipe: Path, tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refusal("compare", short_recipe, "--out", tmp_path / "out", "--on", "ray")
    assert line == "seqcritic: on: Ray is not installed; pip install 'seqcritic[ray]'"


def test_a_cancelled_task_takes_its_process_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    signals: list[int] = []
    process = SimpleNamespace(poll=lambda: None, send_signal=signals.append, wait=lambda: 0)

    def cancel(seconds: float) -> None:
        raise KeyboardInterrupt  # as Ray does

    monkeypatch.setattr(on_ray, "start_process", lambda *arguments: process)
    monkeypatch.setattr(on_ray.time, "sleep", cancel)
    (tmp_path / "run.yaml").touch()
    with pytest.raises(KeyboardInterrupt):
        on_ray.train_there(str(tmp_path / "run.yaml"), str(tmp_path / "run"), str(tmp_path))
    assert signals == [signal.SIGTERM]


def test_a_task_waits_for_the_process_of_a_lost_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lock = acquire_lock(tmp_path / ".lock")
    waited: list[float] = []

    def leave(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            on_ray.os.close(lock)

    monkeypatch.setattr(on_ray.time, "sleep", leave)
    on_ray._wait_for_lock(tmp_path)
    assert len(waited) == 3
