"""What a long task says of itself while it works."""

from __future__ import annotations

import time
from collections.abc import Callable

REPORT_SECONDS = 5.0


class Progress:
    """Passes lines on to `say`: all that are told to it, and every few seconds where the task is."""

    def __init__(self, say: Callable[[str], None], seconds: float = REPORT_SECONDS) -> None:
        self.say = say
        self._seconds = seconds
        self._last = time.monotonic()

    def tick(self, activity: str, amount: int, show: Callable[[int], str]) -> None:
        """Say how far the task is, unless that was said just before; cheap enough for every line of a file."""
        now = time.monotonic()
        if now - self._last >= self._seconds:
            self._last = now
            self.say(f"{activity}: {show(amount)}")


def thousands(count: int) -> str:
    """Return a count for a reader."""
    return f"{count:,} so far"


def megabytes(num_bytes: int) -> str:
    """Return a size for a reader."""
    return f"{num_bytes / 1e6:,.1f} MB"
