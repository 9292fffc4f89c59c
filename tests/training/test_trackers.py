"""Trackers receive what metrics.jsonl holds, go on after a resume, and never end a run."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from seqcritic.settings.io import load_recipe
from seqcritic.training.callbacks import Callback
from seqcritic.training.train import train
from support import PATIENCE_SECONDS, Refusal, method_overrides, records, train_here

ONE_PHASE = [*method_overrides("likelihood"), "phases.actor.updates=6", "phases.train.updates=0"]


def expected(run: Path, name: str) -> list[tuple[int, Any]]:
    """Return the points of a curve by metrics.jsonl."""
    return [(record["total_updates"], pytest.approx(record[name])) for record in records(run) if name in record]


def test_tensorboard_receives_what_the_metrics_hold(recipe: Path, tmp_path: Path):
    accumulation = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = train_here(recipe, tmp_path / "run", *ONE_PHASE, "training.tracker=tensorboard")
    events = accumulation.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    logged = [(event.step, event.value) for event in events.Scalars("actor/valid_score")]
    assert len(logged) > 1
    assert logged == expected(run, "valid_score")


class FakeWandb(ModuleType):
    """Keeps what it is told, and knows its runs again by their names."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.opened: list[dict[str, Any]] = []
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.exit_codes: list[int] = []
        self.fails_at = sys.maxsize

    def init(self, **options: Any) -> SimpleNamespace:
        self.opened.append(options)
        return SimpleNamespace(id=options["id"] or "abc123", log=self.log, finish=self.finish)

    def log(self, numbers: dict[str, float], step: int) -> None:
        if len(self.logged) >= self.fails_at:
            raise ConnectionError("no route\nto host")
        self.logged.append((step, numbers))

    def finish(self, exit_code: int) -> None:
        self.exit_codes.append(exit_code)


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return fake


def test_wandb_receives_what_the_metrics_hold(recipe: Path, tmp_path: Path, wandb: FakeWandb):
    run = train_here(recipe, tmp_path / "run", *ONE_PHASE, "training.tracker=wandb")
    [options] = wandb.opened
    assert (options["project"], options["name"]) == ("tiny", f"{tmp_path.name}/run")
    assert options["config"]["training"]["batch"] == 8
    assert len(wandb.logged) == len(records(run))
    for name in ("valid_score", "likelihood_loss", "seconds"):
        logged = [(step, numbers[f"actor/{name}"]) for step, numbers in wandb.logged if f"actor/{name}" in numbers]
        assert logged == expected(run, name)
    assert wandb.exit_codes == [0]


class Fall(Callback):
    """Ends the run at its third update."""

    def on_update(self, run, measurements):
        if run.progress.update == 3:
            raise KeyboardInterrupt


def test_a_resumed_run_goes_on_under_its_name(recipe: Path, tmp_path: Path, wandb: FakeWandb):
    overrides = [*ONE_PHASE, "training.tracker=wandb"]
    with pytest.raises(KeyboardInterrupt):
        train(load_recipe(recipe, overrides), tmp_path / "run", callbacks=[Fall()])
    assert wandb.exit_codes == [1]
    train_here(recipe, tmp_path / "run", *overrides)
    assert [options["id"] for options in wandb.opened] == [None, "abc123"]
    assert wandb.exit_codes == [1, 0]
    train_here(recipe, tmp_path / "run", *ONE_PHASE)  # what watches a run is no part of what it is


def test_a_tracker_that_fails_on_the_way_is_left_alone(recipe: Path, tmp_path: Path, wandb: FakeWandb, told: list[str]):
    wandb.fails_at = 1
    run = train_here(recipe, tmp_path / "run", *ONE_PHASE, "training.tracker=wandb")
    [line] = [line for line in told if "wandb" in line]
    assert line == "warning: wandb takes no more records (no route to host); metrics.jsonl has all of them"
    assert len(records(run)) > 2
    assert wandb.exit_codes == []


def test_one_that_cannot_begin_is_told_before_the_first_update(
    recipe: Path, tmp_path: Path, wandb: FakeWandb, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
):
    def refuse(**options: Any) -> None:
        raise RuntimeError("no API key\nconfigured")

    monkeypatch.setattr(wandb, "init", refuse)
    command = ("train", recipe, "--out", tmp_path / "run", *ONE_PHASE, "training.tracker=wandb")
    assert "training.tracker: wandb cannot begin: no API key configured" in refusal(*command)
    assert not records(tmp_path / "run")


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_missing_package_is_told_with_its_extra(
    name: str, recipe: Path, tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    line = refusal("train", recipe, "--out", tmp_path / "run", *ONE_PHASE, f"training.tracker={name}")
    assert line.endswith(f"training.tracker: {name} is not installed; pip install 'seqcritic[{name}]'")
    assert not (tmp_path / "run/config.yaml").exists()


def test_wandb_itself_offline(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = train_here(recipe, tmp_path / "run", *ONE_PHASE, "training.tracker=wandb")
    [file] = run.glob("wandb/offline-run-*/run-*.wandb")
    deadline = time.monotonic() + PATIENCE_SECONDS  # a process of its own writes it
    while b"valid_score" not in file.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert json.loads((run / "tracker.json").read_text())["wandb"] in file.name


def test_mlflow_itself_in_a_file(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    run = train_here(recipe, tmp_path / "run", *ONE_PHASE, "training.tracker=mlflow")
    client = mlflow.MlflowClient()
    [stored] = client.search_runs([client.get_experiment_by_name("tiny").experiment_id])
    assert stored.info.status == "FINISHED"
    assert stored.data.params["training.batch"] == "8"
    history = client.get_metric_history(stored.info.run_id, "actor/valid_score")
    assert [(point.step, point.value) for point in history] == expected(run, "valid_score")
