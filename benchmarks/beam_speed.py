"""Beam search of width 10 over 50 tokens against the peers', in sentences a second.

    python benchmarks/beam_speed.py

All sides decode the same 32 sources of workload b as one batch and write exactly 50 tokens: the end token is forbidden
throughout (the peers by their minimal length, seqcritic by the bias of the end token), so nobody stops early.
"""

from __future__ import annotations

import statistics

from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import better, ratio
from side_by_side.session import OURS, Session, milliseconds, title
from side_by_side.workloads import WORKLOADS

WIDTH, LENGTH, SENTENCES = 10, 50, 32
ROUNDS = 6
PEERS = ("joeynmt", "opennmt")
TARGET = 5.0
PRODUCTS = "products"


def measure(session: Session) -> list[Row]:
    """Return the row, without and with the tied output layer."""
    return [_compare(session, tied) for tied in (False, True)]


def _compare(session: Session, tied: bool) -> Row:
    request = {"width": WIDTH, "length": LENGTH, "sentences": SENTENCES, "tied": tied}
    with session.workers(OURS, *PEERS) as workers:
        jobs = []
        for side, worker in workers.items():
            job = session.build(worker, side, kind="beam", workload="b", **request)
            length = job.run(1)["length"]
            if length != LENGTH:
                raise SystemExit(f"{title(side)} wrote {length} tokens, not {LENGTH}")
            jobs.append(job)
        jobs.append(session.build(workers[OURS], PRODUCTS, kind="beam-products", workload="b", **request))
        times = session.alternate(jobs, 1, ROUNDS)
    cpu = {side: [timing.cpu for timing in timings] for side, timings in times.items()}
    peer = better({side: cpu[side] for side in PEERS})
    kind = ", tied output layer on all sides" if tied else ""
    return row(
        f"beam {WIDTH}, length {LENGTH}, b{kind}, against {title(peer)}, the better of {len(PEERS)} peers",
        ratio(cpu[peer], cpu[OURS]),
        target=TARGET,
        details={
            "workload": WORKLOADS["b"].describe() + f", {SENTENCES} sentences at once",
            "times": milliseconds(times),
            "sentences_per_cpu_second": {side: SENTENCES / statistics.median(cpu[side]) for side in cpu},
            "time_over_own_products": statistics.median(cpu[OURS]) / statistics.median(cpu[PRODUCTS]),
        },
        notes=(f"all sides search {SENTENCES} sources at once and never emit the end token",),
    )


if __name__ == "__main__":
    run_alone(measure, __doc__)
