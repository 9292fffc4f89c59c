"""What an update costs: one process against two, and by vocabulary, length and size.

    python benchmarks/scaling.py together [--rounds N] [--json FILE]   # 1 → 2 processes, the same batch in each
    python benchmarks/scaling.py fit [--json FILE]                     # the coefficients of docs/scaling.md

Random token ids of one length stand for text, so that nothing but the named quantities varies. `together` starts
one process and two processes in turns, one thread each, and divides the medians of the wall times of an update; the
load of the machine is printed, for two processes need two idle cores. `fit` takes the CPU time of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqcritic.contracts.actor import LengthLimits
from seqcritic.contracts.batch import Batch
from seqcritic.data.vocabulary import END
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import load_recipe, with_method
from seqcritic.training.distributed import Processes, join_processes
from seqcritic.training.environment import set_up_process
from seqcritic.training.learner import Learner, recipe_learner

# Vocabulary, length, size of every layer, batch.
WORKLOADS = {"a10": (40, 10, 100, 100), "a30": (40, 30, 100, 100), "b": (8000, 20, 256, 64)}
GRID = [
    *((40, length, size, 100) for length in (10, 30) for size in (100, 200)),
    *((vocabulary, length, size, 32) for vocabulary in (2000, 8000) for length in (10, 30) for size in (100, 256)),
]
LABELS = ("likelihood", "actor-critic")
WARM_UP, UPDATES = 2, 8


def build(label: str, vocabulary: int, size: int, processes: Processes) -> Learner:
    """Return a learner whose layers all have one size."""
    names = ("embedding", "hidden", "attention")
    sizes = [f"{network}.{name}={size}" for network in ("actor", "critic") for name in names]
    settings = with_method(load_recipe("demo", [*sizes, "start.actor=null", "start.critic=null"]), label)
    learner = recipe_learner(settings, vocabulary, vocabulary, EditDistanceScore(normalise=False), processes)
    learner.start_phase("train")
    return learner


def random_batch(vocabulary: int, length: int, size: int, seed: int) -> Batch:
    """Return pairs of random sequences of one length."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, vocabulary, (2, size, length + 1), generator=generator)
    tokens[:, :, -1] = END
    mask = torch.ones(size, length + 1, dtype=torch.bool)
    return Batch(tokens[0], mask, tokens[1], mask)


def time_updates(
    label: str, shape: tuple[int, int, int, int], clock: Callable[[], float], processes: Processes
) -> dict[str, float]:
    """Return the median seconds of an update, and of what of it goes to waiting for and summing with the others."""
    vocabulary, length, size, batch = shape
    learner = build(label, vocabulary, size, processes)
    exchanged = [0.0]
    for name in ("average", "average_gradients"):
        setattr(processes, name, _timed(getattr(processes, name), exchanged))
    updates, exchanges = [], []
    for number in range(WARM_UP + UPDATES):
        whole = random_batch(vocabulary, length, batch * processes.size, number)
        exchanged[0] = 0.0
        started = clock()
        learner.update(whole, 1e-4)
        updates.append(clock() - started)
        exchanges.append(exchanged[0])
    return {
        "seconds": statistics.median(updates[WARM_UP:]),
        "exchange": statistics.median(exchanges[WARM_UP:]),
        "parameters": sum(p.numel() for n in learner.optimisers for p in getattr(learner.networks, n).parameters()),
    }


def _timed(function: Callable[..., Any], total: list[float]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        started = time.perf_counter()
        result = function(*arguments)
        total[0] += time.perf_counter() - started
        return result

    return call


def work(label: str, workload: str) -> None:
    """Be one process of a group: time updates and let the first print them."""
    with join_processes() as processes:
        found = time_updates(label, WORKLOADS[workload], time.perf_counter, processes)
        if processes.is_first:
            print(json.dumps(found))


def run_processes(size: int, label: str, workload: str) -> dict[str, float]:
    """Start processes that make updates together and return what the first measured."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    shared = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "work", label, workload]
    group = [
        subprocess.Popen(
            command, env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE
        )
        for rank in range(size)
    ]
    outputs = [process.communicate()[0] for process in group]
    if any(process.returncode for process in group):
        raise SystemExit("a process of the benchmark has failed")
    found: dict[str, float] = json.loads(outputs[0])
    return found


def together(rounds: int) -> dict[str, Any]:
    """Print and return the efficiency of two processes."""
    load = os.getloadavg()[0]
    print(f"# {rounds} rounds of {UPDATES} updates, one thread each, {os.cpu_count()} cores, load before {load:.1f}")
    print("| workload | method | one process, ms | two, ms | efficiency | of it exchange, ms |")
    print("|---|---|---|---|---|---|")
    table = []
    for workload in WORKLOADS:
        for label in LABELS:
            found = [(run_processes(1, label, workload), run_processes(2, label, workload)) for _ in range(rounds)]
            one, two = (statistics.median(pair[side]["seconds"] for pair in found) for side in (0, 1))
            exchange = statistics.median(pair[1]["exchange"] for pair in found)
            row = {"workload": workload, "method": label, "one": one, "two": two, "exchange": exchange}
            table.append(row | {"efficiency": one / two})
            figures = f"{1000 * one:.1f} | {1000 * two:.1f} | {100 * one / two:.0f} % | {1000 * exchange:.1f}"
            print(f"| {workload} | {label} | {figures} |", flush=True)
    return {"load": load, "rounds": rounds, "rows": table}


def terms(label: str, shape: tuple[int, int, int, int], parameters: float) -> list[float]:
    """Return the quantities that an update's cost is proportional to; see docs/scaling.md."""
    vocabulary, length, size, batch = shape
    steps = length + 1 + (LengthLimits().beyond_reference if label != "likelihood" else 0)
    tokens = batch * steps
    return [steps, tokens * size * vocabulary, tokens * vocabulary, tokens * size * (size + steps), parameters]


TERMS = ("steps", "tokens·size·vocabulary", "tokens·vocabulary", "tokens·size·(size + length)", "parameters")


def fit(label: str) -> dict[str, Any]:
    """Measure the grid and return the coefficients, none negative, that fit it best in relative terms."""
    measured = []
    for shape in GRID:
        found = time_updates(label, shape, time.process_time, Processes())
        measured.append((shape, found["seconds"], found["parameters"]))
        print(
            f"{label} V {shape[0]} T {shape[1]} H {shape[2]} B {shape[3]}: {1000 * found['seconds']:.1f} ms", flush=True
        )
    matrix = np.array([terms(label, shape, parameters) for shape, _, parameters in measured])
    seconds = np.array([value for _, value, _ in measured])
    used = list(range(matrix.shape[1]))
    while True:  # least squares of relative errors; a term that comes out negative is left out
        relative = matrix[:, used] / seconds[:, None]
        solution = np.linalg.lstsq(relative, np.ones(len(seconds)), rcond=None)[0]
        if (solution >= 0).all():
            break
        used.pop(int((solution * np.abs(relative).mean(axis=0)).argmin()))
    coefficients = {TERMS[index]: float(value) for index, value in zip(used, solution, strict=True)}
    residuals = relative @ solution - 1
    print(f"# {label}: " + ", ".join(f"{value:.3g} s × {name}" for name, value in coefficients.items()))
    root, worst = np.sqrt((residuals**2).mean()), np.abs(residuals).max()
    print(
        f"# residuals: {100 * root:.0f} % root mean square, {100 * worst:.0f} % at most; load {os.getloadavg()[0]:.1f}"
    )
    return {"coefficients": coefficients, "measured": measured, "residuals": residuals.tolist()}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("together", "fit", "work"))
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    set_up_process(1)
    if options.command == "work":
        work(*options.rest)
        return
    result = together(options.rounds) if options.command == "together" else {label: fit(label) for label in LABELS}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
