"""What a person sees while a run trains: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

SHOWN = (
    ("likelihood_loss", "ll"),
    ("actor_loss", "actor"),
    ("critic_loss", "critic"),
    ("td_error", "td"),
    ("explained_variance", "explained"),
    ("sampled_return", "return"),
)


class Display(Protocol):
    """Receives a run's news."""

    def line(self, text: str) -> None:
        """Say one line that stays."""
        ...

    def start_phase(self, phase: str, done: int, total: int) -> None:
        """Begin to show a phase of `total` updates of which `done` are made."""
        ...

    def advance(self, done: int, rate: float, means: dict[str, float], best: str) -> None:
        """Show how far the phase is; `means` is empty between the lines of metrics.jsonl."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class PlainDisplay:
    """One line for each record, for logs and pipes."""

    def __init__(self) -> None:
        self.phase, self.total = "", 0

    def line(self, text: str) -> None:
        """Print to standard error, where logs belong."""
        print(text, file=sys.stderr, flush=True)

    def start_phase(self, phase: str, done: int, total: int) -> None:
        """Name the phase."""
        self.phase, self.total = phase, total
        self.line(f"phase {phase}: update {done} of {total}")

    def advance(self, done: int, rate: float, means: dict[str, float], best: str) -> None:
        """Print a line when there are new means."""
        if means:
            left = (self.total - done) / rate if rate else 0.0
            place = f"{self.phase} {done}/{self.total}  {rate:.1f}/s  eta {_clock(left)}"
            self.line(f"{place}  {loss_terms(means)}  {best}".rstrip())

    def close(self) -> None:
        """Nothing to restore."""


class SilentDisplay:
    """Shows nothing: of several processes, one speaks."""

    def line(self, text: str) -> None:
        """Say nothing."""

    def start_phase(self, phase: str, done: int, total: int) -> None:
        """Say nothing."""

    def advance(self, done: int, rate: float, means: dict[str, float], best: str) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Nothing to restore."""


class LiveDisplay:
    """A progress bar with rate, time left, loss terms and the last validation score."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:.1f}/s"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[best]} [dim]{task.fields[terms]}"),
            console=console,
        )
        self.task = self.progress.add_task("", visible=False, rate=0.0, best="", terms="")
        self.progress.start()

    def line(self, text: str) -> None:
        """Print above the bar."""
        self.console.print(text, markup=False, highlight=False)

    def start_phase(self, phase: str, done: int, total: int) -> None:
        """Start the bar anew."""
        self.progress.reset(
            self.task, description=phase, total=total, completed=done, visible=True, rate=0.0, best="", terms=""
        )

    def advance(self, done: int, rate: float, means: dict[str, float], best: str) -> None:
        """Move the bar."""
        self.progress.update(self.task, completed=done, rate=rate, best=best)
        if means:
            self.progress.update(self.task, terms=loss_terms(means))

    def close(self) -> None:
        """Stop the bar."""
        self.progress.stop()


def choose_display() -> Display:
    """Return the live display in a terminal and the plain one elsewhere."""
    console = Console(stderr=True)
    return LiveDisplay(console) if console.is_terminal else PlainDisplay()


def loss_terms(means: Mapping[str, float]) -> str:
    """Return the losses and what tells of the critic, shortly."""
    return " ".join(f"{short} {means[name]:.3g}" for name, short in SHOWN if name in means)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
