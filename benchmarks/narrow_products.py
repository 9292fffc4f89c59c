"""Our work with `precision: bfloat16` against the same with float32, in turns in one run, on one thread.

    python benchmarks/narrow_products.py

Updates and beam search of our own actor on the usual workloads; a likelihood update and sampling of a Marian-shaped
model (512, 6 + 6 layers, vocabulary 32,000, 16 sources of 24 tokens) by Hugging Face. The peers compute in float32 on a
CPU; beside our search stands the faster one. Nothing is judged where the processor has no instructions for it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from seqcritic.native import products
from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import alternate, ratio
from side_by_side.session import OURS, Session, milliseconds, title

NARROW, WIDE = "bfloat16", "float32"
CLAIMS: list[tuple[str, dict[str, Any], int, int, float]] = [  # claim, request, steps of a run, rounds, target
    ("likelihood update, a30", {"kind": "likelihood", "workload": "a30"}, 2, 12, 1.15),
    ("likelihood update, b", {"kind": "likelihood", "workload": "b"}, 1, 10, 1.6),
    ("likelihood update, b-wide", {"kind": "likelihood", "workload": "b-wide"}, 1, 8, 1.7),
    (
        "actor-critic update, b",
        {"kind": "actor-critic", "workload": "b", "score": "bleu", "lengths": "trained"},
        1,
        8,
        1.6,
    ),
    ("likelihood update, Hugging Face base model", {"kind": "hf-likelihood", "workload": "base"}, 1, 5, 1.5),
    ("sampling, Hugging Face base model", {"kind": "hf-sampling", "workload": "base"}, 1, 5, 1.6),
]
BEAM = {"kind": "beam", "workload": "b", "width": 10, "length": 50, "sentences": 32}
BEAM_TARGET, BEAM_PEER, BEAM_PEER_TARGET, BEAM_ROUNDS = 1.6, "opennmt", 3.2, 6


def measure(session: Session) -> list[Row]:
    """Return the rows."""
    return [*(_compare(session, *claim) for claim in CLAIMS), *_search(session)]


def _compare(session: Session, claim: str, request: dict[str, Any], steps: int, rounds: int, target: float) -> Row:
    with session.workers(OURS) as workers:
        jobs = {
            precision: session.build(workers[OURS], OURS, **request, precision=precision)
            for precision in (NARROW, WIDE)
        }
        for job in jobs.values():
            job.run(2)
        times = alternate({name: partial(job.timing, steps) for name, job in jobs.items()}, session.rounds(rounds))
    cpu = {side: [timing.cpu for timing in timings] for side, timings in times.items()}
    return row(
        f"{claim}, bfloat16 against float32",
        ratio(cpu[WIDE], cpu[NARROW]),
        target=_judged(target),
        details={"times": milliseconds(times)},
    )


def _search(session: Session) -> list[Row]:
    with session.workers(OURS, BEAM_PEER) as workers:
        jobs = {
            precision: session.build(workers[OURS], OURS, **BEAM, precision=precision) for precision in (NARROW, WIDE)
        }
        jobs[BEAM_PEER] = session.build(workers[BEAM_PEER], BEAM_PEER, **BEAM)
        for job in jobs.values():
            job.run(1)
        times = alternate({name: partial(job.timing, 1) for name, job in jobs.items()}, session.rounds(BEAM_ROUNDS))
    cpu = {side: [timing.cpu for timing in timings] for side, timings in times.items()}
    details = {"times": milliseconds(times)}
    return [
        row(
            "beam 10, length 50, b, bfloat16 against float32",
            ratio(cpu[WIDE], cpu[NARROW]),
            target=_judged(BEAM_TARGET),
            details=details,
        ),
        row(
            f"beam 10, length 50, b, bfloat16 against {title(BEAM_PEER)}",
            ratio(cpu[BEAM_PEER], cpu[NARROW]),
            target=_judged(BEAM_PEER_TARGET),
            details=details,
        ),
    ]


def _judged(target: float) -> float | None:
    """Return a target where the processor has the instructions, else none."""
    return target if products.describe().startswith("yes") else None


if __name__ == "__main__":
    run_alone(measure, __doc__)
