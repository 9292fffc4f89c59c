"""Peak of the resident memory of a process that makes actor-critic updates on words.

    python benchmarks/step_memory.py

The peak is VmHWM of a process of its own (Linux), PyTorch and everything else included.
"""

from __future__ import annotations

from side_by_side.alone import run_alone
from side_by_side.claims import Row
from side_by_side.session import OURS, Session
from side_by_side.workloads import WORKLOADS

UPDATES = 8
TARGET = 1.5


def measure(session: Session) -> list[Row]:
    """Return the row."""
    with session.workers(OURS) as workers:
        job = session.build(
            workers[OURS],
            OURS,
            kind="memory",
            method="actor-critic",
            workload="b",
            score="bleu",
            lengths="trained",
        )
        gigabytes = job.run(max(3, session.rounds(UPDATES)))["peak_bytes"] / 1e9
    return [
        Row(
            "peak resident memory of actor-critic updates, b",
            gigabytes,
            gigabytes,
            gigabytes,
            unit=" GB",
            target=TARGET,
            sense="at most",
            clock="none",
            details={"workload": WORKLOADS["b"].describe()},
        )
    ]


if __name__ == "__main__":
    run_alone(measure, __doc__)
