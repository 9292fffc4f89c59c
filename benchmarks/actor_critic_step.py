"""An actor-critic update over a likelihood update of ours, and the share of it that goes into the rewards.

    python benchmarks/actor_critic_step.py

Rewards: edit distance on the characters, BLEU on the words. Samples must be as long as a trained actor's. On a10 and
a30 the actor is first trained by likelihood; on b, where that takes hours, the samples are cut at the reference's
length give or take two tokens. The measured ratio of their lengths is in the notes.
"""

from __future__ import annotations

from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import Timing, alternate, ratio
from side_by_side.session import OURS, Job, Session, milliseconds
from side_by_side.workloads import WORKLOADS

SETTINGS = {  # workload: likelihood updates before, steps of a run, rounds, largest ratio, score
    "a10": (400, 5, 12, 3.2, "edit-distance"),
    "a30": (150, 2, 10, 3.2, "edit-distance"),
    "b": (0, 1, 8, 3.0, "bleu"),
}
REWARDS_TARGET = 3.0
REWARDS_JUDGED = ("a30", "b")


def measure(session: Session) -> list[Row]:
    """Return the rows of all workloads."""
    return [found for workload in SETTINGS for found in _compare(session, workload)]


def _compare(session: Session, workload: str) -> list[Row]:
    warm_up, steps, rounds, target, score = SETTINGS[workload]
    shares: list[float] = []
    length_ratios: list[float] = []

    def run(job: Job) -> Timing:
        answer = job.run(steps)
        if job is actor_critic:
            shares.append(100 * answer["score"] / answer["cpu"])
            length_ratios.append(answer["length_ratio"])
        return Timing(answer["cpu"] / steps, answer["wall"] / steps)

    with session.workers(OURS) as workers:
        likelihood = session.build(workers[OURS], OURS, kind="likelihood", workload=workload)
        actor_critic = session.build(
            workers[OURS],
            OURS,
            kind="actor-critic",
            workload=workload,
            score=score,
            warm_up=warm_up,
            lengths="natural" if warm_up else "trained",
        )
        for job in (likelihood, actor_critic):
            job.run(1)
        sides = {"likelihood": lambda: run(likelihood), "actor-critic": lambda: run(actor_critic)}
        times = alternate(sides, session.rounds(rounds))
    cpu = {side: [timing.cpu for timing in timings] for side, timings in times.items()}
    lengths = sum(length_ratios) / len(length_ratios)
    how = f"after {warm_up} likelihood updates" if warm_up else "cut as a trained actor's would end"
    notes = (f"{workload}: samples are {lengths:.2f} times as long as the references, {how}",)
    details = {"workload": WORKLOADS[workload].describe(), "times": milliseconds(times), "length_ratio": lengths}
    found = [
        row(
            f"actor-critic update over likelihood update, {workload}",
            ratio(cpu["actor-critic"], cpu["likelihood"]),
            target=target,
            sense="at most",
            details=details,
            notes=notes,
        )
    ]
    if workload in REWARDS_JUDGED:
        hundred = [100.0] * len(shares)
        measured = ratio([100 * share for share in shares], hundred)
        claim = f"rewards ({score} of all prefixes) in an actor-critic update, {workload}"
        found.append(row(claim, measured, unit=" %", target=REWARDS_TARGET, sense="at most", notes=notes))
    return found


if __name__ == "__main__":
    run_alone(measure, __doc__)
