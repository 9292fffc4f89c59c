"""A REINFORCE update against Eole's on the nearest model it can express.

    python benchmarks/reinforce_step.py

Both sides sample the same number of tokens: the end token is forbidden by its bias, seqcritic stops each sample at its
reference's length and Eole all of them at the mean one. Eole's step is that of its RLTrainer: sample, score, one pass
over the samples with a graph, backward, update. Its model is first trained by likelihood to see that it learns.
"""

from __future__ import annotations

from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import ratio
from side_by_side.session import OURS, Session, milliseconds, title
from side_by_side.workloads import WORKLOADS

PEER = "eole"
SETTINGS = {  # workload: steps of a run, rounds, likelihood updates to see it learn, score
    "a10": (4, 12, 10, "edit-distance"),
    "a30": (2, 8, 5, "edit-distance"),
    "b": (1, 6, 2, "bleu"),
}
TARGET = 2.5


def measure(session: Session) -> list[Row]:
    """Return a row for each workload, b also with the tied output layer."""
    return [_compare(session, name, tied) for name, tied in (("a10", False), ("a30", False), ("b", False), ("b", True))]


def _compare(session: Session, name: str, tied: bool) -> Row:
    workload = WORKLOADS[name]
    steps, rounds, check, score = SETTINGS[name]
    with session.workers(OURS, PEER) as workers:
        session.warm_up(session.build(workers[PEER], PEER, kind="likelihood", workload=name, tied=tied), check)
        sampled = (workload.shortest + workload.longest) // 2 + 1
        jobs = [
            session.build(
                workers[OURS], OURS, kind="reinforce", workload=name, score=score, lengths="exact", tied=tied
            ),
            session.build(workers[PEER], PEER, kind="reinforce", workload=name, sampled=sampled, tied=tied),
        ]
        for job in jobs:
            job.run(1)
        times = session.alternate(jobs, steps, rounds)
    cpu = {side: [timing.cpu for timing in timings] for side, timings in times.items()}
    kind = ", tied output layer on both sides" if tied else ""
    return row(
        f"REINFORCE update, {name}{kind}, against {title(PEER)}",
        ratio(cpu[PEER], cpu[OURS]),
        target=TARGET,
        details={"workload": workload.describe(), "times": milliseconds(times), "sampled_tokens": sampled},
        notes=(
            *jobs[1].description["notes"],
            "REINFORCE: no sample emits the end token; both sides draw equally many tokens",
        ),
    )


if __name__ == "__main__":
    run_alone(measure, __doc__)
