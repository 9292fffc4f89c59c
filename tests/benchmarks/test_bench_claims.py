"""What each claim makes of the workers' answers, with workers that only pretend to work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import actor_critic_step
import beam_speed
import bench
import greedy_evaluation
import matrix_products
import reinforce_step
import step_memory
import training_step
from side_by_side.claims import Row
from side_by_side.session import Session
from side_by_side.table import render_report

SECONDS = {"seqcritic": 1.0, "joeynmt": 3.0, "opennmt": 2.5, "eole": 4.0}
OF_KINDS = {"actor-critic": 3.0, "products": 0.8, "beam-products": 0.5, "recipe-evaluation": 20.0}


class PretendedWorker:
    """Answers at once, as if a step had taken the seconds of its side or kind."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.losses = iter(range(1000, 0, -1))

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "build":
            return {
                "parameters": 6,
                "layers": {"weight": [3, 2]},
                "notes": [f"note of {self.side}"],
                "operations": 8_000_000_000,
                "note": "bare products",
                "evaluate_every": 1980,
            }
        kind = dict(word.split("=") for word in request["name"].split(" "))["kind"]
        cpu = OF_KINDS.get(kind, SECONDS[self.side]) * request["steps"]
        told = {"length": 50, "length_ratio": 1.0, "mean_length": 10.0, "peak_bytes": 2e9, "score": 0.02 * cpu}
        return told | {"loss": next(self.losses), "cpu": cpu, "wall": 2 * cpu, "steps": request["steps"]}


class PretendedSession(Session):
    """A session without processes."""

    @contextmanager
    def workers(self, *sides: str, threads: int = 1) -> Iterator[dict[str, Any]]:
        yield {side: PretendedWorker(side) for side in sides}

    def install_all(self) -> None:
        pass


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return PretendedSession(tmp_path, effort=0.3)


def figures(rows: list[Row]) -> list[float]:
    return [round(row.measured, 3) for row in rows]


def test_a_likelihood_update_is_compared_with_the_better_peer(session: Session):
    rows = training_step.measure(session)
    assert figures(rows) == [3.0] * 4 + [2.5] * 3
    assert [(row.threads, row.clock) for row in rows[:4]] == [(1, "cpu"), (1, "cpu"), (2, "wall"), (2, "wall")]
    assert "OpenNMT-py" in rows[4].claim
    assert "tied" in rows[5].claim
    assert all(row.met for row in rows[:6])
    assert (rows[6].met, "wide" in rows[6].claim) == (None, True)
    assert rows[0].notes == ("note of seqcritic", "note of joeynmt")


def test_a_side_that_does_not_learn_is_not_timed(session: Session):
    worker = PretendedWorker("joeynmt")
    worker.losses = iter([1, 2])
    job = session.build(worker, "joeynmt", kind="likelihood", workload="a10")
    with pytest.raises(SystemExit, match="the loss does not fall"):
        session.warm_up(job, 1)


def test_the_products_are_the_measure_of_our_update(session: Session):
    rows = matrix_products.measure(session)
    assert figures(rows) == [1.25, 1.25]
    assert rows[0].met
    assert rows[0].details["gigaflops_per_second_of_the_products"] == pytest.approx(10.0)


def test_an_actor_critic_update_has_a_cost_and_a_share_of_rewards(session: Session):
    rows = actor_critic_step.measure(session)
    assert [row.unit for row in rows] == ["×", "×", " %", "×", " %"]
    assert figures(rows) == [3.0, 3.0, 2.0, 3.0, 2.0]
    assert [row.met for row in rows] == [True] * 5


def test_reinforce_is_compared_with_eole(session: Session):
    assert figures(reinforce_step.measure(session)) == [4.0] * 4


def test_beam_search_is_told_in_sentences_a_second(session: Session):
    first, _ = beam_speed.measure(session)
    assert first.measured == pytest.approx(2.5)
    assert first.met is False
    assert first.details["sentences_per_cpu_second"]["seqcritic"] == pytest.approx(32.0)
    assert first.details["time_over_own_products"] == pytest.approx(2.0)


def test_a_beam_of_another_length_is_refused(session: Session, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(beam_speed, "LENGTH", 51)
    with pytest.raises(SystemExit, match="wrote 50 tokens, not 51"):
        beam_speed.measure(session)


def test_greedy_evaluation_is_a_share_of_the_time_between_two(session: Session):
    assert figures(greedy_evaluation.measure(session)) == [1.0, 1.0]  # 20 of 1980 × 1 + 20


def test_memory_is_in_gigabytes(session: Session):
    (row,) = step_memory.measure(session)
    assert (row.measured, row.met) == (2.0, False)


def test_the_driver_writes_a_report_that_renders(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "some" / "bench.json"
    monkeypatch.setattr(bench, "session_of", lambda options: session)
    monkeypatch.setattr("sys.argv", ["bench.py", "--only", "step_memory,beam_speed", "--out", str(out)])
    bench.main()
    report = json.loads(out.read_text(encoding="utf-8"))
    assert len(report["rows"]) == 3
    assert set(report["load"]["other_cores"]) == {"step_memory", "beam_speed"}
    assert render_report(report) in capsys.readouterr().out


def test_an_unknown_claim_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("sys.argv", ["bench.py", "--only", "beam_sped"])
    with pytest.raises(SystemExit) as refusal:
        bench.main()
    assert refusal.value.code == 2
    assert "unknown claim 'beam_sped'" in capsys.readouterr().err
