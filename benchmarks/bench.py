"""All claims on speed, measured side by side in one run: prints the table and writes the JSON.

    python benchmarks/bench.py [--only training_step,beam_speed] [--effort 0.5] [--out FILE]     (or: make bench)

Peers are installed on first use, each in its own virtual environment under --cache. Other load on the machine is
looked for before and during the run, warned about and recorded; it does not stop the run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import actor_critic_step
import beam_speed
import greedy_evaluation
import huggingface_speed
import matrix_products
import narrow_products
import reinforce_step
import step_memory
import training_step
from side_by_side import machine
from side_by_side.claims import Row
from side_by_side.session import REPORT, Session, add_options, session_of
from side_by_side.table import render_report

CLAIMS: dict[str, Callable[[Session], list[Row]]] = {
    module.__name__: module.measure
    for module in (
        training_step,
        matrix_products,
        actor_critic_step,
        reinforce_step,
        beam_speed,
        greedy_evaluation,
        step_memory,
        huggingface_speed,
        narrow_products,
    )
}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--only", help=f"some of {','.join(CLAIMS)}")
    parser.add_argument("--out", type=Path, default=REPORT, help="where the JSON goes (default %(default)s)")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(CLAIMS)
    unknown = [name for name in names if name not in CLAIMS]
    if unknown:
        parser.error(f"unknown claim '{unknown[0]}'; known: {', '.join(CLAIMS)}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for report in measure_all(names, options):
        # After every claim, so that what was measured is there even if a later one fails.
        options.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(render_report(report))
    told = machine.warning(report["load"]["other_cores_mean"])
    if told:
        print(told, file=sys.stderr)
    print(f"written: {options.out}", file=sys.stderr)


def measure_all(names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run the claims one after the other and yield the report so far after each."""
    started, average = time.perf_counter(), os.getloadavg()
    session = session_of(options)
    session.install_all()
    rows: list[Row] = []
    loads: dict[str, float | None] = {}
    for number, name in enumerate(names, start=1):
        session.say(f"[{number}/{len(names)}] {name} ({time.perf_counter() - started:.0f} s so far)")
        other_load = machine.OtherLoad()
        found = CLAIMS[name](session)
        loads[name] = other_load.cores()
        for line in (
            machine.warning(loads[name]),
            *(f"    {row.claim}: {row.measured:.2f}{row.unit}" for row in found),
        ):
            if line:
                session.say(line)
        rows += found
        yield {
            "date": datetime.date.today().isoformat(),
            "seconds": time.perf_counter() - started,
            "effort": options.effort,
            "machine": machine.describe(),
            "load": load_report(average, loads),
            "rows": [row.to_dict() for row in rows],
            "models": session.models,
        }


def load_report(average: tuple[float, float, float], loads: dict[str, float | None]) -> dict[str, Any]:
    """Return what is recorded of other load."""
    known = [load for load in loads.values() if load is not None]
    return {
        "average_before": average,
        "average_after": os.getloadavg(),
        "other_cores": loads,
        "other_cores_mean": sum(known) / len(known) if known else None,
        "tolerated": machine.TOLERATED,
    }


if __name__ == "__main__":
    main()
