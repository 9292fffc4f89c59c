"""Running trainings side by side as processes of their own, one thread each, with one display for all."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL, Popen

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from seqcritic.comparing.plan import PlannedRun
from seqcritic.errors import Interrupted, NonFiniteError, UserError
from seqcritic.settings.io import write_settings
from seqcritic.settings.tree import Settings
from seqcritic.training.display import loss_terms
from seqcritic.training.phases import planned_phases
from seqcritic.training.run_folder import check_settings
from seqcritic.training.tracking import Record, read_metrics
from seqcritic.training.train import PARENT_VARIABLE, is_finished, stop_signals

POLL_SECONDS = 0.5
PLAIN_SECONDS = 15.0


class Jobs:
    """Starts runs as their needs are met, at most `num_parallel` at a time, and stops all of them when one fails.

    With `may_diverge`, a row whose numbers stop being finite is no fault: what needs it is left out, the others go on.
    """

    def __init__(
        self,
        runs: list[PlannedRun],
        settings_of: Callable[[PlannedRun], Settings],
        num_parallel: int,
        may_diverge: bool = False,
    ) -> None:
        self.waiting = list(runs)
        self.settings_of = settings_of
        self.num_parallel = num_parallel
        self.may_diverge = may_diverge
        self.running: dict[Path, tuple[PlannedRun, Popen[bytes]]] = {}
        self.board = _Board()

    def run(self) -> None:
        """Run all to their end."""
        received: list[int] = []
        with stop_signals(received):
            try:
                while self._start_what_can():
                    time.sleep(POLL_SECONDS)
                    # Before collecting: Ctrl-C reaches the runs too, and their leaving is then no fault.
                    if received:
                        raise Interrupted(received[0], "stopped; the same command resumes")
                    self._collect()
                    self.board.show([run for run, _ in self.running.values()])
            except BaseException:
                self._stop()
                raise
            finally:
                self.board.close()
        assert not self.waiting, "a run waits for one that is not planned"

    def _start_what_can(self) -> bool:
        """Start runs whose needs are met, pass over those that are finished, and tell whether any is under way."""
        for run in list(self.waiting):
            if len(self.running) >= self.num_parallel:
                break
            if not all(is_finished(folder) for folder in run.needs):
                continue
            self.waiting.remove(run)
            settings = self.settings_of(run)
            check_settings(run.folder, settings)
            if not is_finished(run.folder):
                self.running[run.folder] = (run, _start(run, settings))
                self.board.add(run, settings)
        return bool(self.running)

    def _collect(self) -> None:
        for folder, (run, process) in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            del self.running[folder]
            if code == 0:
                self.board.finish(run)
                continue
            if self.may_diverge and run.row and code == NonFiniteError.exit_code:
                self.board.finish(run, "diverged")
                self.waiting = [other for other in self.waiting if folder not in other.needs]
                continue
            lines = _log_path(run).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            message = f"{run.title} (seed {run.seed}) ended with exit code {code}: {lines[-1] if lines else ''}"
            raise NonFiniteError(message) if code == NonFiniteError.exit_code else UserError(message)

    def _stop(self) -> None:
        """Ask the running processes to checkpoint and leave, and wait for them."""
        for _, process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for _, process in self.running.values():
            process.wait()
        self.running.clear()


class _Board:
    """Bars in a terminal, a line every few seconds elsewhere."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[news]}"),
            console=self.console,
            disable=not self.live,
        )
        self.progress.start()
        self.tasks: dict[Path, TaskID] = {}
        self._printed_at = 0.0

    def add(self, run: PlannedRun, settings: Settings) -> None:
        """Show a run that starts."""
        total = sum(getattr(settings.phases, phase).updates for phase in planned_phases(settings))
        self.tasks[run.folder] = self.progress.add_task(_name(run), total=total, news="starting")
        if not self.live:
            print(f"{_name(run)}: starting, {total} updates", file=sys.stderr, flush=True)

    def show(self, runs: list[PlannedRun]) -> None:
        """Bring the board up to date with the runs' metrics."""
        due = time.monotonic() - self._printed_at >= PLAIN_SECONDS
        if not self.live and not due:
            return
        self._printed_at = time.monotonic()
        for run in runs:
            records = read_metrics(run.folder)
            if not records:
                continue
            done, news = records[-1]["total_updates"], _news(records)
            self.progress.update(self.tasks[run.folder], completed=done, news=news)
            if not self.live:
                total = self.progress.tasks[self.tasks[run.folder]].total
                print(f"{_name(run)}: {done}/{total:.0f}  {news}", file=sys.stderr, flush=True)

    def finish(self, run: PlannedRun, how: str = "done") -> None:
        """Mark a run as done, or say how else it ended."""
        task = self.tasks[run.folder]
        news = _news(read_metrics(run.folder))
        self.progress.update(task, completed=self.progress.tasks[task].total, news=f"{how}  {news}")
        if not self.live:
            print(f"{_name(run)}: {how}  {news}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        self.progress.stop()


def _start(run: PlannedRun, settings: Settings) -> Popen[bytes]:
    """Start `seqcritic train` on a run; its output goes to a log beside the run's folder."""
    config = run.folder.with_name(f"{run.folder.name}.yaml")
    try:
        config.parent.mkdir(parents=True, exist_ok=True)
        write_settings(settings, config)
        with _log_path(run).open("ab") as log:
            return Popen(
                [sys.executable, "-m", "seqcritic", "train", str(config), "--out", str(run.folder)],
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {PARENT_VARIABLE: str(os.getpid())},
            )
    except OSError as error:
        raise UserError(f"--out: cannot write {config}: {error.strerror or error}") from None


def _log_path(run: PlannedRun) -> Path:
    return run.folder.with_name(f"{run.folder.name}.log")


def _name(run: PlannedRun) -> str:
    return f"seed {run.seed}: {run.title}"


def _news(records: list[Record]) -> str:
    """Return the rate, the last validation score and the last loss terms of a run."""
    parts = []
    means = [record for record in records if record["kind"] == "train"]
    if len(means) > 1 and means[-1]["seconds"] > means[-2]["seconds"]:
        done = means[-1]["total_updates"] - means[-2]["total_updates"]
        parts.append(f"{done / (means[-1]['seconds'] - means[-2]['seconds']):.1f}/s")
    scores = [record for record in records if "valid_score" in record]
    if scores:
        parts.append(f"valid score {scores[-1]['valid_score']:.2f} (best {scores[-1]['best_score']:.2f})")
    return "  ".join(parts + [loss_terms(record) for record in means[-1:]])
