"""Our likelihood update on words as a multiple of its own matrix products at the machine's measured rate.

    python benchmarks/matrix_products.py

The products are those of every weight matrix, forward and both of the backward pass, at the shapes of the batch that
is trained on, for its tokens and not for its padding, weight gradients as one product each. They run bare, in buffers
that exist already, in turns with updates of the same process.
"""

from __future__ import annotations

from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import alternate, ratio
from side_by_side.session import OURS, Session, milliseconds
from side_by_side.workloads import WORKLOADS
from training_step import WARM_UP

ROUNDS = 10
TARGET = 1.25


def measure(session: Session) -> list[Row]:
    """Return the multiple, without and with the tied output layer."""
    return [_multiple(session, tied) for tied in (False, True)]


def _multiple(session: Session, tied: bool) -> Row:
    with session.workers(OURS) as workers:
        update = session.build(workers[OURS], OURS, kind="likelihood", workload="b", tied=tied)
        session.warm_up(update, WARM_UP["b"])
        products = session.build(workers[OURS], OURS, kind="products", workload="b", tied=tied)
        products.run(1)
        sides = {"update": lambda: update.timing(1), "products": lambda: products.timing(1)}
        times = alternate(sides, session.rounds(ROUNDS))
    kind = ", tied output layer" if tied else ""
    cpu = {side: [timing.cpu for timing in timings] for side, timings in times.items()}
    gigaflops = products.description["operations"] / sorted(cpu["products"])[len(cpu["products"]) // 2] / 1e9
    return row(
        f"likelihood update, b{kind}, over its own matrix products",
        ratio(cpu["update"], cpu["products"]),
        target=TARGET,
        sense="at most",
        details={
            "workload": WORKLOADS["b"].describe(),
            "times": milliseconds(times),
            "gigaflops_per_second_of_the_products": gigaflops,
        },
        notes=(products.description["note"],),
    )


if __name__ == "__main__":
    run_alone(measure, __doc__)
