"""What is wrong on a command line, or went wrong while it ran, said in one line on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

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
        # The descriptor, not the object: what is in the object's buffer is written there on the way out.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def lack_of_memory(error: Exception) -> str:
    """Return what to do if an error means that memory is full: torch has a type of its own for it on a GPU only."""
    said = str(error).lower()
    signs = ("can't allocate memory", "out of memory", "not enough memory", "storage size calculation overflowed")
    return LACK_OF_MEMORY if isinstance(error, MemoryError) or any(sign in said for sign in signs) else ""


def unknown_command(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> str:
    """Return what is wrong with the name of the command, if anything is, with the name that was meant."""
    given = next(iter(arguments), "-")  # none at all is argparse's to tell
    # Only the subparsers have a dictionary; argparse has no public way to ask for their names.
    known = [name for action in parser._actions if isinstance(action.choices, dict) for name in action.choices]
    if given.startswith("-") or given in known:
        return ""
    return f"no command '{given}'{nearest(given, known)}; commands: {', '.join(known)}"


def up_to(largest: int) -> Callable[[str], int]:
    """Return the type of whole numbers from 1 to the largest that can be meant."""

    def positive(text: str) -> int:
        # Of very long numbers Python tells nothing but that it will not read them.
        if not text.isdecimal() or len(text) > 100 or not 1 <= int(text) <= largest:
            raise argparse.ArgumentTypeError(f"'{text[:100]}' is not a whole number from 1 to {largest:,}")
        return int(text)

    return positive


def fraction(text: str) -> float:
    """Return a number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0  # refused below
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value
