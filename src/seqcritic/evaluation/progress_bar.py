"""What a person sees while a model is evaluated: a bar in a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from seqcritic.contracts.batch import Batch

PLAIN_SECONDS = 15.0

Item = TypeVar("Item")
ProgressBar = Callable[[str, Sequence[Batch]], Iterable[Batch]]


def without_progress(title: str, batches: Sequence[Batch]) -> Iterable[Batch]:
    """Return the batches as they are."""
    return batches


def show_progress(title: str, batches: Sequence[Batch]) -> Iterator[Batch]:
    """Yield the batches and show on standard error how many of their sentences are done."""
    return _show(title, batches, [len(batch) for batch in batches], "sentences")


def show_step_progress(title: str, count: int) -> Iterator[int]:
    """Yield the numbers of so many steps and show how many are done."""
    return _show(title, range(count), [1] * count, "steps")


def _show(title: str, items: Sequence[Item], sizes: Sequence[int], unit: str) -> Iterator[Item]:
    console = Console(stderr=True)
    total, done = sum(sizes), 0
    printed_at = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=total)
        for item, size in zip(items, sizes, strict=True):
            yield item
            done += size
            progress.update(task, completed=done)
            if not console.is_terminal and time.monotonic() - printed_at >= PLAIN_SECONDS:
                printed_at = time.monotonic()
                print(f"{title}: {done}/{total} {unit}", file=sys.stderr, flush=True)


def with_prefix(prefix: str, progress_bar: ProgressBar) -> ProgressBar:
    """Return a progress bar that sets a prefix before every title."""
    return lambda title, batches: progress_bar(f"{prefix}: {title}", batches)
