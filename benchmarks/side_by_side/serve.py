"""The other end of a worker: builds jobs and runs them as the driver asks, one JSON object a line.

    {"do": "build", "name": N, "kind": K, "workload": W, …}  →  what the job says of itself
    {"do": "run", "name": N, "steps": n}                     →  {"cpu": s, "wall": s, "steps": n, …}

CPU time is that of all threads of the process. This module is imported inside the peers' environments, so it uses
nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, Protocol

Answer = dict[str, Any]


class Job(Protocol):
    """Something to time."""

    def describe(self) -> Answer:
        """Return parameters, layers and notes."""
        ...

    def run(self, steps: int) -> Answer:
        """Do so many steps and return what else there is to tell, such as the mean loss."""
        ...


Builder = Callable[[Answer], Job]


def serve(builders: dict[str, Builder]) -> None:
    """Answer requests until there are none; whatever a peer prints goes to the log."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    jobs: dict[str, Job] = {}
    for line in sys.stdin:
        try:
            answer = _answer(json.loads(line), builders, jobs)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answer(request: Answer, builders: dict[str, Builder], jobs: dict[str, Job]) -> Answer:
    name = request["name"]
    if request["do"] == "build":
        jobs[name] = builders[request["kind"]](request)
        return jobs[name].describe()
    cpu, wall = time.process_time(), time.perf_counter()
    told = jobs[name].run(request["steps"])
    times = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return told | times | {"steps": request["steps"]}
