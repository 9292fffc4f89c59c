"""The state of a run that is not a tensor: it goes through JSON exactly, and phases begin afresh."""

from __future__ import annotations

import json
from dataclasses import fields

from seqcritic.training.progress import Progress

WHOLE_RUN = {"total_updates", "examples", "compute", "seconds", "metrics_bytes", "sharpening"}


def busy_progress() -> Progress:
    """Return a state in which no field has its first value."""
    progress = Progress(
        1,
        7,
        27,
        216,
        0.1 + 0.2,
        5,
        1 / 3,
        5,
        2,
        [[5, 1 / 3]],
        [0.1],
        0.6,
        seconds=1e-17,
        metrics_bytes=9,
        sharpening=2.0,
        finished=True,
    )
    progress.add({"td_error": 2.0, "loss": 1 / 7})
    return progress


def test_json_keeps_every_field_exactly():
    progress = busy_progress()
    fresh = Progress()
    assert all(getattr(progress, field.name) != getattr(fresh, field.name) for field in fields(Progress))
    assert Progress(**json.loads(json.dumps(progress.to_dict()))) == progress


def test_a_phase_begins_afresh_but_for_what_counts_over_the_whole_run():
    before, progress, fresh = busy_progress(), busy_progress(), Progress()
    progress.start_phase(2)
    assert progress.phase == 2
    for field in fields(Progress):
        if field.name != "phase":
            kept = before if field.name in WHOLE_RUN else fresh
            assert getattr(progress, field.name) == getattr(kept, field.name), field.name


def test_means_are_taken_once():
    progress = Progress()
    progress.add({"loss": 1.0, "entropy": 3.0})
    progress.add({"loss": 2.0, "entropy": 5.0})
    assert progress.take_means() == {"loss": 1.5, "entropy": 4.0}
    assert progress.take_means() == {}


def test_an_interval_of_td_errors_is_closed_once():
    progress = Progress()
    progress.close_interval()
    assert progress.td_errors == []
    progress.add({"td_error": 1.0})
    progress.add({"td_error": 4.0})
    progress.close_interval()
    progress.close_interval()
    progress.add({"td_error": 7.0})
    progress.close_interval()
    assert progress.td_errors == [2.5, 7.0]
