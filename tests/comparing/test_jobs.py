"""Processes side by side: the first fault is told and ends them all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seqcritic.comparing import jobs
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import PlannedRun
from seqcritic.errors import NonFiniteError, UserError
from seqcritic.settings.tree import Settings


@pytest.mark.parametrize(("code", "fault"), [(3, NonFiniteError), (2, UserError), (-9, UserError)])
def test_a_fault_ends_the_other_runs(
    code: int, fault: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    commands = {"likelihood": f"echo some line; echo why it failed; {f'exit {code}' if code > 0 else 'kill -9 $$'}"}
    started: dict[str, subprocess.Popen[bytes]] = {}

    def begin(run: PlannedRun, settings: Settings) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{run.kind}.log").open("wb") as log:
            command = ["sh", "-c", commands.get(run.kind, "exec sleep 60")]
            started[run.kind] = subprocess.Popen(command, stdout=log)
        return started[run.kind]

    monkeypatch.setattr(jobs, "_start", begin)
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.01)
    labels = ("reinforce", "likelihood", "actor-critic")
    runs = [PlannedRun(label, 4, tmp_path / label, ()) for label in labels]
    with pytest.raises(fault) as caught:
        Jobs(runs, lambda run: Settings(), num_parallel=2).run()
    assert str(caught.value) == f"likelihood (seed 4) ended with exit code {code}: why it failed"
    assert set(started) == {"reinforce", "likelihood"}, "more runs than slots were started"
    assert started["reinforce"].returncode == -15
