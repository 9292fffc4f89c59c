"""How a command that fails says so: one line on standard error, whatever was in the text that is at fault."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from seqcritic.errors import nearest

LACK_OF_MEMORY = (
    "there is not enough memory; make training.batch (training.accumulate keeps updates as large), method.samples, "
    "data.maximum_length or the sizes of actor and critic smaller (a run keeps its last checkpoint)"
)


def complain(fault: object) -> None:
    """Print one line, whatever was in the text that is at fault."""
    print(f"seqcritic: {' '.join(str(fault).splitlines())}", file=sys.stderr)


def discard_output() -> None:
    """Send what is left to print nowhere: Python would complain of it again on its way out."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def is_lack_of_memory(error: Exception) -> bool:
    """Tell a full memory from other faults: torch has a type of its own for it on a GPU only."""
    said = str(error).lower()
    signs = ("can't allocate memory", "out of memory", "not enough memory", "storage size calculation overflowed")
    return isinstance(error, MemoryError) or any(sign in said for sign in signs)


def unknown_command(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> str:
    """Return what is wrong with the name of the command, if anything is, with the name that was meant."""
    given = next(iter(arguments), "-")
    known = [name for action in parser._actions if isinstance(action.choices, dict) for name in action.choices]
    if given.startswith("-") or given in known:
        return ""
    return f"no command '{given}'{nearest(given, known)}; commands: {', '.join(known)}"
