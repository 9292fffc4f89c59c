"""The faults a run can end with, each with the exit code the command line returns for it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class UserError(ValueError):
    """A fault the user can mend: wrong file, wrong key, wrong folder. One line says what, where and what to do."""

    exit_code = 2


class NonFiniteError(ArithmeticError):
    """A loss, gradient, reward or value became infinite or not a number; the last checkpoint is kept."""

    exit_code = 3


class LostProcess(Exception):
    """Another process of a training on several has ended, so that this one cannot go on; checkpoints are kept."""

    exit_code = 4


class SilentExit(Exception):
    """Ends this process without a word: another one of the same training has said why."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class Interrupted(Exception):
    """The run was asked to stop by a signal and has written its checkpoint."""

    def __init__(self, signal_number: int, message: str = "interrupted") -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def nearest(wrong: str, known: Sequence[str]) -> str:
    """Return the end of a message that names the known word nearest to a wrong one; nothing where none is near."""
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.5)
    return f" (did you mean '{close[0]}'?)" if close else ""
