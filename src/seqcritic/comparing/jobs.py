"""Running trainings side by side as processes of their own, one thread each, with one display for all."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Protocol

from seqcritic.comparing.plan import PlannedRun
from seqcritic.contracts.score import Score
from seqcritic.errors import Interrupted, NonFiniteError, UserError
from seqcritic.evaluation.evaluate import build_score
from seqcritic.progress import Bar, log
from seqcritic.settings.io import write_settings
from seqcritic.settings.tree import Settings
from seqcritic.training.phases import planned_phases
from seqcritic.training.run_folder import check_settings
from seqcritic.training.tracking import Record, loss_terms, read_metrics
from seqcritic.training.train import PARENT_VARIABLE, is_finished, stop_signals

POLL_SECONDS = 0.5


class Job(Protocol):
    """A run that was started somewhere: what `Jobs` asks of a process."""

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""

    def send_signal(self, number: int, /) -> None:
        """Ask it to checkpoint and leave."""

    def wait(self) -> int:
        """Wait for its end and return its exit code."""


Start = Callable[[PlannedRun, Settings], Job]


class Jobs:
    """Starts runs as their needs are met, at most `num_parallel` at a time, and stops all of them when one fails.

    `start` starts one, by default as a process of this machine. With `may_diverge`, a row whose numbers stop being
    finite is no fault: what needs it is left out, the others go on.
    """

    def __init__(
        self,
        runs: list[PlannedRun],
        settings_of: Callable[[PlannedRun], Settings],
        num_parallel: int,
        may_diverge: bool = False,
        start: Start | None = None,
    ) -> None:
        self.waiting = list(runs)
        self.settings_of = settings_of
        self.num_parallel = num_parallel
        self.may_diverge = may_diverge
        self.start = start
        self.running: dict[Path, _Running] = {}
        self._bars = ExitStack()

    def run(self) -> None:
        """Run all to their end."""
        received: list[int] = []
        with stop_signals(received), self._bars:
            try:
                while self._start_what_can():
                    time.sleep(POLL_SECONDS)
                    # Before collecting: Ctrl-C reaches the runs too, and their leaving is then no fault.
                    if received:
                        raise Interrupted(received[0], "stopped; the same command resumes")
                    self._collect()
                    self._show()
            except BaseException:
                self._stop()
                raise
        assert not self.waiting, "a run waits for one that is not planned"

    def _start_what_can(self) -> bool:
        """Start runs whose needs are met, pass over those that are finished, and tell whether any is under way."""
        for run in list(self.waiting):  # a copy: runs are taken out on the way
            if len(self.running) >= self.num_parallel:
                break
            if not all(is_finished(folder) for folder in run.needs):
                continue
            self.waiting.remove(run)
            # Only now: how many updates a row may make depends on what its critic has cost.
            settings = self.settings_of(run)
            check_settings(run.folder, settings)  # of a finished run too: it must be this one
            if not is_finished(run.folder):
                total = sum(getattr(settings.phases, phase).updates for phase in planned_phases(settings))
                made = read_metrics(run.folder)[-1:]  # by an earlier command, before it was stopped
                bar = Bar(_name(run), total, start=made[0]["total_updates"] if made else 0)
                process = (self.start or _start)(run, settings)
                score = build_score(settings)
                self.running[run.folder] = _Running(run, process, self._bars.enter_context(bar), score)
                log.info(f"{_name(run)}: starting, {total} updates")
        return bool(self.running)

    def _collect(self) -> None:
        for folder, job in list(self.running.items()):
            run, code = job.run, job.process.poll()
            if code is None:
                continue
            del self.running[folder]
            job.bar.close()
            diverged = self.may_diverge and run.row and code == NonFiniteError.exit_code
            if code == 0 or diverged:
                how = "diverged" if diverged else "done"
                log.info(f"{_name(run)}: {how}  {_news(read_metrics(run.folder), job.score)}".rstrip())
            if code == 0:
                continue
            if diverged:
                # What would begin with a diverged critic has nothing to begin with.
                self.waiting = [other for other in self.waiting if folder not in other.needs]
                continue
            # The last line says why: a fault is told in one.
            lines = log_path(folder).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            message = f"{run.title} (seed {run.seed}) ended with exit code {code}: {lines[-1] if lines else ''}"
            raise NonFiniteError(message) if code == NonFiniteError.exit_code else UserError(message)

    def _show(self) -> None:
        """Bring the bars up to date with the runs' metrics, which are read only where somebody would see it."""
        for job in self.running.values():
            if job.bar.due and (records := read_metrics(job.run.folder)):
                job.bar.update(records[-1]["total_updates"], _news(records, job.score))

    def _stop(self) -> None:
        """Ask the running processes to checkpoint and leave, and wait for them."""
        for job in self.running.values():
            # All are asked before any is waited for: they write their checkpoints side by side.
            job.process.send_signal(signal.SIGTERM)
        for job in self.running.values():
            job.process.wait()
        self.running.clear()


@dataclass(frozen=True)
class _Running:
    """A run that trains, and what is shown of it."""

    run: PlannedRun
    process: Job
    bar: Bar
    score: Score


def _start(run: PlannedRun, settings: Settings) -> Job:
    """Start a run on this machine."""
    config = write_config(run, settings)
    try:
        return start_process(config, run.folder)
    except OSError as error:
        raise UserError(f"out: cannot write beside {config}: {error.strerror or error}") from None


def write_config(run: PlannedRun, settings: Settings) -> Path:
    """Write the settings of a run beside its folder."""
    config = run.folder.with_name(f"{run.folder.name}.yaml")
    try:
        config.parent.mkdir(parents=True, exist_ok=True)
        write_settings(settings, config)
    except OSError as error:
        raise UserError(f"out: cannot write {config}: {error.strerror or error}") from None
    return config


def start_process(config: Path, folder: Path, workplace: str | None = None) -> Popen[bytes]:
    """Start `seqcritic train` on a run; its output goes to a log beside the run's folder."""
    with log_path(folder).open("ab") as output:  # of a resumed run, what was said before stays
        return Popen(
            [sys.executable, "-m", "seqcritic", "train", str(config), "--out", str(folder)],
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            # A run whose comparison is gone stops by itself.
            env=os.environ | {PARENT_VARIABLE: str(os.getpid())},
            cwd=workplace,
        )


def log_path(folder: Path) -> Path:
    """Return where a run's process writes what it says."""
    return folder.with_name(f"{folder.name}.log")


def _name(run: PlannedRun) -> str:
    return f"seed {run.seed}: {run.title}"


def _news(records: list[Record], score: Score) -> str:
    """Return the last validation score, the rate and the last loss terms of a run: what matters most comes first."""
    parts = []
    scores = [record for record in records if "valid_score" in record]
    if scores:
        last, best = (score.write(scores[-1][name]) for name in ("valid_score", "best_score"))
        parts.append(f"valid {score.name} {last} (best {best})")
    means = [record for record in records if record["kind"] == "train"]
    if len(means) > 1 and means[-1]["seconds"] > means[-2]["seconds"]:
        done = means[-1]["total_updates"] - means[-2]["total_updates"]
        parts.append(f"{done / (means[-1]['seconds'] - means[-2]['seconds']):.1f}/s")
    return "  ".join(parts + [" ".join(loss_terms(record)) for record in means[-1:]])
