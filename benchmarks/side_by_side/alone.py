"""Running one claim's script by itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from side_by_side.claims import Row
from side_by_side.session import Session, add_options, session_of
from side_by_side.table import render, render_times


def run_alone(measure: Callable[[Session], list[Row]], description: str | None) -> None:
    """Measure and print the rows."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    rows = measure(session_of(parser.parse_args()))
    print(render(rows))
    print(render_times(rows))
