"""What a person sees: a live line in a terminal that leaves it as it was, plain lines elsewhere."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from seqcritic.errors import UserError
from seqcritic.settings.io import load_recipe
from seqcritic.training.display import LiveDisplay, PlainDisplay, choose_display
from seqcritic.training.train import train
from support import SHORT, train_here

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


@pytest.mark.parametrize("fault", [[], ["data.train=missing.txt"], ["seed=2"]], ids=["none", "text", "folder"])
def test_a_terminal_gets_its_cursor_back(fault: list[str], recipe: Path, tmp_path: Path):
    if fault == ["seed=2"]:
        train_here(recipe, tmp_path / "run", *SHORT)
    screen = io.StringIO()
    display = LiveDisplay(Console(file=screen, force_terminal=True))
    settings = load_recipe(recipe, [*SHORT, *fault])
    if fault:
        with pytest.raises(UserError):
            train(settings, tmp_path / "run", display)
    else:
        train(settings, tmp_path / "run", display)
    shown = screen.getvalue()
    assert HIDE_CURSOR in shown
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)


def test_a_log_gets_plain_lines(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert isinstance(choose_display(), PlainDisplay)
    train_here(recipe, tmp_path / "run", *SHORT)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\x1b" not in captured.err
    lines = captured.err.splitlines()
    assert f"training actor-critic in {tmp_path / 'run'} with 1 thread(s)" in lines
    assert "phase critic: update 0 of 4" in lines
    assert any(line.startswith("train 4/4  ") and "actor " in line and "valid CER" in line for line in lines)
    assert lines[-1] == f"finished: {tmp_path / 'run'}"
