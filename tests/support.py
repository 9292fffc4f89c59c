"""What tests of the command line share: a tiny task, processes to run and stop, and what a run leaves behind."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seqcritic.cli import main
from seqcritic.comparing import jobs
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.settings.methods import typical_costs

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "then",
    "it",
    "went",
    "to",
    "see",
    "some",
    "old",
    "friends",
    "by",
    "the",
    "river",
    "in",
    "spring",
]
METHODS = (*registered_methods(), "actor-critic+likelihood", "raml+likelihood")
PATIENCE_SECONDS = 120.0
Refusal = Callable[..., str]
SHORT = [f"phases.{phase}.updates=4" for phase in ("actor", "critic", "train")]


def slow_but(quick: Collection[str], values: Iterable[str]) -> list[Any]:
    """Return the cases of a test of which only the quick ones are run by `make check`, the others by `make slow`."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


class Screen(io.StringIO):
    """A terminal that keeps all that was written to it."""

    def isatty(self) -> bool:
        return True


def write_text(path: Path, num_lines: int = 300, seed: int = 0) -> Path:
    """Write lines of a few common words."""
    randomness = random.Random(seed)
    lines = (" ".join(randomness.choices(WORDS, k=randomness.randint(2, 9))) for _ in range(num_lines))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_recipe(folder: Path, **changes: Any) -> Path:
    """Write text and a recipe that trains on it in about two seconds; `changes` replace whole sections."""
    text = str(write_text(folder / "text.txt"))
    tree = {
        "name": "tiny",
        "data": {"train": text, "valid": text, "test": text, "length": 6, "valid_size": 20, "test_size": 30},
        "actor": {"embedding": 8, "hidden": 8, "attention": 8},
        "critic": {"embedding": 8, "hidden": 8, "attention": 8},
        "method": {"gamma_theta": 0.1, "gamma_phi": 0.1},
        "phases": {phase: {"updates": 20, "learning_rate": 0.01} for phase in ("actor", "critic", "train")},
        "training": {"batch": 8, "evaluate_every": 5, "log_every": 2, "checkpoint_seconds": 0},
        "compare": {"costs": dict(typical_costs())},  # given, so that nothing depends on the clock
    }
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(tree | changes), encoding="utf-8")
    return path


def method_overrides(label: str) -> list[str]:
    """Return the overrides that choose a method by its label in tables."""
    name, mixed, _ = label.partition("+")
    return [f"method.name={name}", f"method.likelihood_weight={0.1 if mixed else 0}"]


def command_line(*arguments: object) -> list[str]:
    """Return the command that runs seqcritic with these arguments."""
    return [sys.executable, "-m", "seqcritic", *map(str, arguments)]


def quiet_environment() -> dict[str, str]:
    """Return the environment of a user: one thread, and Python's own buffering."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {"OMP_NUM_THREADS": "1"}


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own to its end."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": quiet_environment()} | options
    return subprocess.run(command_line(*arguments), text=True, timeout=PATIENCE_SECONDS, check=False, **options)


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a process of its own, its standard error in a pipe."""
    return subprocess.Popen(
        command_line(*arguments), env=quiet_environment(), stderr=subprocess.PIPE, text=True, **options
    )


class Fork:
    """A command in a fork of this process, which spares it the seconds that torch takes to load."""

    def __init__(self, *arguments: object, before: Callable[[], None] = lambda: None) -> None:
        self.pid = os.fork()
        self.code: int | None = None
        if self.pid == 0:
            code = 1
            try:
                sys.stderr = open(os.devnull, "w")  # noqa: SIM115 – as long as the process
                os.dup2(sys.stderr.fileno(), 2)
                before()
                code = main([str(argument) for argument in arguments])
            finally:
                os._exit(code)

    def poll(self, flags: int = os.WNOHANG) -> int | None:
        """Return the exit code, or minus the number of the signal it died of, or None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, flags)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def kill(self) -> None:
        """Kill it at once."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        code = self.poll(flags=0)
        assert code is not None
        return code


def start_in_forks(patch: pytest.MonkeyPatch) -> list[str]:
    """Let the runs of a comparison be forks of this process; return the names of those that are started, in order."""
    started: list[str] = []

    def fork(command: list[str], **options: object) -> Fork:
        started.append(Path(command[-1]).name)
        return Fork(*command[command.index("train") :])

    patch.setattr(jobs, "Popen", fork)
    patch.setattr(jobs, "POLL_SECONDS", 0.01)
    return started


def train_here(recipe: Path, out: Path, *overrides: str) -> Path:
    """Train in this process, which has torch loaded already, and return the folder."""
    assert main(["train", str(recipe), "--out", str(out), *overrides]) == 0
    return out


def complaints(stderr: str) -> list[str]:
    """Return the lines by which a command says what is wrong."""
    assert "Traceback" not in stderr
    return [line for line in stderr.splitlines() if line.startswith("seqcritic: ")]


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the complete records of metrics.jsonl."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def updates_done(folder: Path) -> int:
    """Return the number of updates that metrics.jsonl tells of."""
    return max((record["total_updates"] for record in records(folder)), default=0)


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str] | Fork) -> None:
    """Wait for something that a running process does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.002)


def outcome(folder: Path) -> dict[str, Any]:
    """Return all of a finished run that must not depend on when and how often it was stopped."""
    latest = sorted((folder / "checkpoints").glob("[0-9]*"))[-1]
    weights = [*sorted((folder / "model").glob("*.safetensors")), latest / "networks.safetensors"]
    metrics = [
        {key: value for key, value in record.items() if key not in ("seconds", "digest")} for record in records(folder)
    ]
    return {
        **{f"{path.parent.name == 'model'}/{path.name}": path.read_bytes() for path in weights},
        "generator": (latest / "generator.safetensors").read_bytes(),
        "metrics": metrics,
    }


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the time and content of every file below a folder."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in _below(folder)
    }


def _below(folder: Path) -> Iterator[Path]:
    yield folder
    yield from sorted(folder.rglob("*"))


def word_share(prediction: str, reference: str) -> float:
    """Return the share of the reference's words that the prediction has: a score as a user would write one."""
    words = reference.split()
    return sum(word in prediction.split() for word in words) / max(len(words), 1)
