"""A likelihood update against the peers' on the same workload: characters on one and two threads, then words.

    python benchmarks/training_step.py

A step is the whole update: loss, backward pass, clipping, Adam. One thread is judged by CPU time, two by wall time,
because threads that wait for each other burn CPU time too. On b all sides read out through a layer as wide as the
state, with a matrix of its own or, `tied`, with the embedding's. On b-wide we read out as our recipes do, straight from
[state; context], which is three times the peers' products: for information.
"""

from __future__ import annotations

from typing import Any

from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import Timing, better, ratio
from side_by_side.session import OURS, Job, Session, milliseconds, title
from side_by_side.workloads import WORKLOADS

CHARACTERS = {"a10": (5, 15), "a30": (2, 12)}  # steps of a run, rounds
WORDS = (1, 10)
WORD_PEERS = ["joeynmt", "opennmt"]
WARM_UP = {"a10": 10, "a30": 5, "b": 2, "b-wide": 2}


def measure(session: Session) -> list[Row]:
    """Return the rows of all workloads."""
    rows = []
    for threads in (1, 2):
        for workload, (steps, rounds) in CHARACTERS.items():
            rows.append(compare(session, workload, ["joeynmt"], threads, steps, rounds, 2.0))
    for tied in (False, True):
        rows.append(compare(session, "b", WORD_PEERS, 1, *WORDS, 1.2, tied=tied))
    return [*rows, compare(session, "b-wide", WORD_PEERS, 1, *WORDS, target=None)]


def compare(
    session: Session,
    workload: str,
    peers: list[str],
    threads: int,
    steps: int,
    rounds: int,
    target: float | None,
    **model: Any,
) -> Row:
    """Time our update and the peers' in turns; the row is about the better peer."""
    with session.workers(OURS, *peers, threads=threads) as workers:
        jobs: list[Job] = []
        for side, worker in workers.items():
            job = session.build(worker, side, kind="likelihood", workload=workload, **model)
            session.warm_up(job, WARM_UP[workload])
            jobs.append(job)
        times = session.alternate(jobs, steps, rounds)
    clock = "cpu" if threads == 1 else "wall"
    seconds = {side: seconds_by(clock, timings) for side, timings in times.items()}
    peer = better({side: seconds[side] for side in peers})
    against = title(peer) if len(peers) == 1 else f"{title(peer)}, the better of {len(peers)} peers"
    kind = ", tied output layer on all sides" if model.get("tied") else ""
    if workload == "b-wide":
        kind = " (our output layer three times as wide as the peers')"
    return row(
        f"likelihood update, {workload}{kind}, against {against}",
        ratio(seconds[peer], seconds[OURS]),
        target=target,
        threads=threads,
        clock=clock,
        details={"workload": WORKLOADS[workload].describe(), "times": milliseconds(times)},
        notes=tuple(note for job in jobs for note in job.description.get("notes", ())),
    )


def seconds_by(clock: str, timings: list[Timing]) -> list[float]:
    """Return the seconds of one clock."""
    return [getattr(timing, clock) for timing in timings]


if __name__ == "__main__":
    run_alone(measure, __doc__)
