"""Long-lived processes, one a side, that the driver lets work in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

BENCHMARKS = Path(__file__).parents[1]
STAND_INS = BENCHMARKS / "peers" / "unused"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Worker:
    """One process that answers requests; only one of them works at a time, for the driver waits for the answer."""

    def __init__(self, python: Path | str, script: Path, threads: int, log: Path) -> None:
        self.script = script
        self.log = log
        environment = os.environ | {variable: str(threads) for variable in THREAD_VARIABLES}
        own = os.environ.get("PYTHONPATH", "") if str(python) == sys.executable else str(STAND_INS)
        path = [str(BENCHMARKS), own] if own else [str(BENCHMARKS)]
        environment |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""}
        log.parent.mkdir(parents=True, exist_ok=True)
        self._errors = log.open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(python), str(script), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
        )

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer; a failure names the log."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(dict(request)) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process has ended"}
        if "error" in answer:
            raise SystemExit(f"{self.script.name}: {answer['error']}\nits log: {self.log}")
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.wait()
        self._errors.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
