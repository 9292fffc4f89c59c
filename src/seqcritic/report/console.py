"""The terminal that tables are printed to, whatever its encoding."""

from __future__ import annotations

import io
import sys

from rich.console import Console


def open_console() -> Console:
    """Return a console on standard output; signs that its encoding lacks become question marks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return Console()
