"""One measuring session: options, workers, progress, and what every claim does alike."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from side_by_side import machine
from side_by_side.environments import PEERS, python_of
from side_by_side.figures import Timing, alternate
from side_by_side.layers import matrices
from side_by_side.workers import BENCHMARKS, Worker

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "benchmarks" / "results" / "bench.json"
OURS = "seqcritic"


class Job:
    """A built job of a worker: a model of one side on one workload."""

    def __init__(self, side: str, worker: Worker, request: dict[str, Any]) -> None:
        self.side = side
        self.worker = worker
        self.name = " ".join(f"{key}={value}" for key, value in request.items())
        self.description = worker.ask(request | {"do": "build", "name": self.name})

    def run(self, steps: int) -> dict[str, Any]:
        """Do so many steps and return the worker's answer."""
        return self.worker.ask({"do": "run", "name": self.name, "steps": steps})

    def timing(self, steps: int) -> Timing:
        """Do so many steps and return the time of one."""
        answer = self.run(steps)
        return Timing(answer["cpu"] / steps, answer["wall"] / steps)


class Session:
    """What the claims need to measure, and what they leave for the record."""

    def __init__(self, cache: Path, effort: float) -> None:
        self.cache = cache
        self.effort = effort
        self.models: list[dict[str, Any]] = []

    def say(self, line: str) -> None:
        """Tell how far we are."""
        print(line, file=sys.stderr, flush=True)

    def rounds(self, usual: int) -> int:
        """Return how many rounds to make; a small effort may leave one, for trying things out."""
        return max(1, round(usual * self.effort))

    def install_all(self) -> None:
        """Make all peers' environments before anything is timed."""
        for peer in PEERS.values():
            python_of(peer, self.cache, self.say)

    @contextmanager
    def workers(self, *sides: str, threads: int = 1) -> Iterator[dict[str, Worker]]:
        """Start a worker for each side, and end them all."""
        with ExitStack() as stack:
            started = {}
            for side in sides:
                python = sys.executable if side == OURS else python_of(PEERS[side], self.cache, self.say)
                log = self.cache / "logs" / f"{side}-{threads}.log"
                script = BENCHMARKS / "peers" / f"{side}_worker.py"
                started[side] = stack.enter_context(Worker(python, script, threads, log))
            yield started

    def build(self, worker: Worker, side: str, **request: Any) -> Job:
        """Build a job and keep what it says of its model for the record."""
        job = Job(side, worker, request)
        model = {
            "side": title(side),
            "workload": workload_of(request),
            "tied": bool(request.get("tied")),
        }
        known = [{key: entry[key] for key in model} for entry in self.models]
        if "layers" in job.description and model not in known:
            parameters, layers = job.description["parameters"], job.description["layers"]
            self.models.append(model | {"parameters": parameters, "layers": layers})
            self.say(f"    {title(side)}: {parameters:,} parameters, {matrices(layers)}")
        return job

    def warm_up(self, job: Job, steps: int) -> None:
        """Train for some steps and stop if the loss does not fall: a side that does not learn is not timed."""
        losses = [job.run(steps)["loss"] for _ in range(2)]
        if not losses[1] < losses[0]:
            raise SystemExit(f"{job.side}, {job.name}: the loss does not fall ({losses[0]:.3f} to {losses[1]:.3f})")
        self.say(f"    {title(job.side)} learns: mean loss {losses[0]:.3f}, then {losses[1]:.3f}")

    def alternate(self, jobs: Sequence[Job], steps: int, rounds: int) -> dict[str, list[Timing]]:
        """Time jobs of several sides in turns."""
        rounds = self.rounds(rounds)
        return alternate({job.side: partial(job.timing, steps) for job in jobs}, rounds)


def title(side: str) -> str:
    """Return a side's name for people."""
    return PEERS[side].title if side in PEERS else side


def milliseconds(times: dict[str, list[Timing]]) -> dict[str, dict[str, float]]:
    """Return the medians of every side for the record."""
    return {
        side: {
            "cpu_ms": 1000 * statistics.median(timing.cpu for timing in timings),
            "wall_ms": 1000 * statistics.median(timing.wall for timing in timings),
        }
        for side, timings in times.items()
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what every script takes."""
    parser.add_argument("--cache", type=Path, default=ROOT / ".bench", help="folder for the peers' environments")
    parser.add_argument(
        "--effort", type=float, default=1.0, help="factor on the number of rounds; 0 for one round each"
    )


def session_of(options: argparse.Namespace) -> Session:
    """Return the session that the options ask for, other load having been looked for."""
    told = machine.warning(machine.other_load_now())
    if told:
        print(told, file=sys.stderr, flush=True)
    return Session(options.cache, options.effort)


def workload_of(request: dict[str, Any]) -> str:
    """Return what a request names its workload by: a synthetic one, a recipe, or the size of a Hugging Face model."""
    return next((str(request[key]) for key in ("workload", "recipe", "size") if key in request), "")
