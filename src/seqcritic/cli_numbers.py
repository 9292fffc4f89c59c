"""Numbers as the command line takes them: each has bounds, and a fault is told in one line."""

from __future__ import annotations

import argparse
from collections.abc import Callable


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
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value
