"""Callbacks: every event once and in order, a run that one of them stops, and errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from seqcritic import Callback, NonFiniteError, load_recipe, train
from seqcritic.settings.io import settings_from
from seqcritic.training.learner import Learner
from seqcritic.training.run import Run
from seqcritic.training.train import is_finished
from support import outcome, records, write_recipe


class Diary(Callback):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def on_start(self, run: Run) -> None:
        self.events.append(("start", run.progress.total_updates))

    def on_phase(self, run: Run, phase: str) -> None:
        self.events.append(("phase", phase))

    def on_update(self, run: Run, measurements: Mapping[str, float]) -> None:
        self.events.append(("update", sorted(measurements)))

    def on_evaluation(self, run: Run, scores: Mapping[str, float]) -> None:
        self.events.append(("evaluation", sorted(scores)))

    def on_record(self, run: Run, record: Mapping[str, object]) -> None:
        self.events.append(("record", dict(record)))

    def on_checkpoint(self, run: Run, folder: Path) -> None:
        self.events.append(("checkpoint", folder.is_dir()))

    def on_end(self, run: Run) -> None:
        self.events.append(("end", is_finished(run.folder)))

    def on_error(self, run: Run, error: BaseException) -> None:
        self.events.append(("error", type(error).__name__))

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


@pytest.fixture
def settings(tmp_path):
    phases = {phase: {"updates": 6, "learning_rate": 0.01} for phase in ("actor", "critic", "train")}
    tree = load_recipe(write_recipe(tmp_path, phases=phases)).model_dump(mode="json")
    return settings_from(tree)


def test_every_event_is_told_once_and_in_order(settings, tmp_path):
    diary = Diary()
    run = train(settings, tmp_path / "run", [diary])
    kinds = diary.kinds()
    assert kinds[0] == "start"
    assert diary.events[-1] == ("end", True)
    assert [told for kind, told in diary.events if kind == "phase"] == ["actor", "critic", "train"]
    assert kinds.count("update") == 18
    assert kinds.count("evaluation") == sum(record["kind"] != "train" for record in records(run))
    assert ("evaluation", ["best_score", "held_out_explained_variance", "valid_score"]) in diary.events
    told = [record for kind, record in diary.events if kind == "record"]
    assert [record | {"digest": 0} for record in told] == [record | {"digest": 0} for record in records(run)]
    assert kinds.count("checkpoint") >= 1
    assert all(told for kind, told in diary.events if kind == "checkpoint")
    again = Diary()
    train(settings, tmp_path / "run", [again])
    assert again.events == [], "a finished run has no events"


def test_callbacks_that_look_on_change_nothing(settings, tmp_path):
    watched = train(settings, tmp_path / "watched", [Diary()])
    assert outcome(watched) == outcome(train(settings, tmp_path / "alone"))


class StopAfter(Callback):
    """Stops a run after so many updates of its last phase."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_update(self, run: Run, measurements: Mapping[str, float]) -> None:
        if run.phases[run.progress.phase] == "train" and run.progress.update == self.updates:
            run.stop("seen enough")


def test_a_callback_stops_training_and_the_model_is_exported(settings, tmp_path):
    diary = Diary()
    run = train(settings, tmp_path / "run", [StopAfter(3), diary])
    assert is_finished(run)
    assert diary.kinds().count("update") == 15
    assert diary.kinds()[-1] == "end"
    train(settings, tmp_path / "run")
    assert max(record["total_updates"] for record in records(run)) <= 15, "it is finished, not interrupted"


def test_an_error_is_told_before_it_is_raised(settings, tmp_path, monkeypatch):
    def fail(*arguments: object) -> None:
        raise NonFiniteError("the loss is not finite")

    monkeypatch.setattr(Learner, "update", fail)
    diary = Diary()
    with pytest.raises(NonFiniteError):
        train(settings, tmp_path / "run", [diary])
    assert diary.events[-1] == ("error", "NonFiniteError")
    assert "end" not in diary.kinds()
