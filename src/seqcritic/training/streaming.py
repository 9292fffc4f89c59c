"""Lines from a pipe as they arrive: all that are complete at once, so that a slow writer is answered at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from seqcritic.errors import UserError

CHUNK_BYTES = 1 << 16


def arriving_lines(descriptor: int) -> Iterator[list[str]]:
    """Yield lists of the complete lines that one read brought; a last line without an end counts too.

    Lines before one that cannot be read are yielded still.
    """
    pending = b""
    number = 0
    while True:
        chunk = os.read(descriptor, CHUNK_BYTES)
        *complete, pending = (pending + chunk).split(b"\n")
        if not chunk and pending:
            complete, pending = [*complete, pending], b""
        lines: list[str] = []
        fault: UserError | None = None
        for line in complete:
            number += 1
            try:
                lines.append(_decode(line, number))
            except UserError as error:
                fault = error
                break
        if lines:
            yield lines
        if fault:
            raise fault
        if not chunk:
            return


class LineProgress:
    """A line counter on standard error, where a person watches and the predictions go elsewhere."""

    def __init__(self) -> None:
        watched = sys.stderr.isatty() and not sys.stdout.isatty()
        self._progress = Progress(
            TextColumn("{task.completed} lines"), TimeElapsedColumn(), console=Console(stderr=True), disable=not watched
        )
        self._task = self._progress.add_task("lines", total=None)

    def __enter__(self) -> LineProgress:
        """Start to show it."""
        self._progress.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._progress.stop()

    def advance(self, count: int) -> None:
        """Count some more lines."""
        self._progress.advance(self._task, count)


def _decode(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
    except UnicodeDecodeError:
        raise UserError(f"standard input:{number}: not valid UTF-8; convert it, for example with iconv") from None
