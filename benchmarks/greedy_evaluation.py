"""Greedy evaluation of 6,075 sentences as a share of a spelling run that evaluates at its recipe's interval.

    python benchmarks/greedy_evaluation.py

The share is evaluation / (evaluate_every × update + evaluation), with the recipe's batch and the likelihood update,
the cheapest there is: during the other methods the share is smaller. The actor is trained for some updates first, so
that its predictions end where they should.
"""

from __future__ import annotations

from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import alternate, ratio
from side_by_side.session import OURS, Session, milliseconds

SENTENCES = 6_075
RECIPES = {"spelling-L10-eta0.3": 600, "spelling-L30-eta0.3": 200}  # likelihood updates before
STEPS, ROUNDS = 10, 8
TARGET = 1.0


def measure(session: Session) -> list[Row]:
    """Return a row for each length."""
    return [_fraction(session, recipe) for recipe in RECIPES]


def _fraction(session: Session, recipe: str) -> Row:
    warm_up = RECIPES[recipe]
    with session.workers(OURS) as workers:
        update = session.build(workers[OURS], OURS, kind="recipe-training", recipe=recipe, warm_up=1)
        evaluation = session.build(
            workers[OURS], OURS, kind="recipe-evaluation", recipe=recipe, warm_up=warm_up, sentences=SENTENCES
        )
        told = evaluation.run(1)
        sides = {"update": lambda: update.timing(STEPS), "evaluation": lambda: evaluation.timing(1)}
        times = alternate(sides, session.rounds(ROUNDS))
    interval = update.description["evaluate_every"]
    evaluations = [timing.cpu for timing in times["evaluation"]]
    runs = [interval * timing.cpu + spent for timing, spent in zip(times["update"], evaluations, strict=True)]
    return row(
        f"greedy evaluation of {SENTENCES:,} sentences in a run of {recipe}",
        ratio([100 * spent for spent in evaluations], runs),
        unit=" %",
        target=TARGET,
        sense="at most",
        details={"evaluate_every": interval, "times": milliseconds(times), "mean_length": told["mean_length"]},
        notes=(
            f"{recipe}: one evaluation every {interval:,} likelihood updates; predictions of "
            f"{told['mean_length']:.1f} characters on average",
        ),
    )


if __name__ == "__main__":
    run_alone(measure, __doc__)
