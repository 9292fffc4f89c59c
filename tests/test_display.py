"""What a person sees: bars in a terminal that leave it as it was, plain lines elsewhere, or nothing."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.cells import cell_len

from seqcritic import progress
from seqcritic.errors import UserError
from seqcritic.progress import Bar, Display, log, set_up_logging, silence
from seqcritic.settings.io import load_recipe
from seqcritic.training.callbacks import Callback
from seqcritic.training.run import Run
from seqcritic.training.train import train
from support import SHORT, Screen, train_here

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
NEWS, TERMS = "valid CER 25.31 (best 24.98)", ["ll 12.3", "actor -0.0123", "critic 0.456", "td 0.0712", "return 7.12"]


Terminal = Callable[[], Screen]


@pytest.fixture(autouse=True)
def fresh_logger() -> Iterator[None]:
    """The logger as it is before the first call, and afterwards as it was."""
    before = log.handlers[:], log.level, log.propagate
    log.handlers[:], log.propagate = [], True
    log.setLevel(logging.NOTSET)
    yield
    log.handlers[:], log.propagate = before[0], before[2]
    log.setLevel(before[1])


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A function that makes a terminal of standard error; pytest sets it anew between fixtures and test."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")

    def open_screen() -> Screen:
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        return screen

    return open_screen


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the clock of bars shows."""
    seconds = [0.0]
    monkeypatch.setattr("seqcritic.progress.time.monotonic", lambda: seconds[0])
    return seconds


class Failing(Callback):
    """Fails in the middle of a phase."""

    def on_update(self, run: Run, measurements: Mapping[str, float]) -> None:
        raise RuntimeError("a fault of the user's own")


@pytest.mark.parametrize("callbacks", [[], [Failing()]], ids=["none", "fault"])
def test_a_terminal_gets_its_cursor_back(callbacks: list[Callback], recipe: Path, tmp_path: Path, terminal: Terminal):
    screen = terminal()
    with pytest.raises(RuntimeError) if callbacks else nullcontext():
        train(load_recipe(recipe, SHORT), tmp_path / "run", callbacks)
    shown = screen.getvalue()
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert sys.stderr is screen


def test_a_terminal_is_left_alone_where_nothing_begins(recipe: Path, tmp_path: Path, terminal: Terminal):
    screen = terminal()
    with pytest.raises(UserError):
        train(load_recipe(recipe, [*SHORT, "data.train=missing.txt"]), tmp_path / "run")
    assert screen.getvalue() == ""


def test_nothing_stands_under_the_line_that_says_finished(recipe: Path, tmp_path: Path, terminal: Terminal):
    screen = terminal()
    train(load_recipe(recipe, SHORT), tmp_path / "run")
    assert screen.getvalue().splitlines()[-1] == f"finished: {tmp_path / 'run'}"
    assert "train 4/4  " not in screen.getvalue(), "the line of a bar that is seen"


def test_a_log_gets_plain_lines(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    train_here(recipe, tmp_path / "run", *SHORT)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\x1b" not in captured.err
    lines = captured.err.splitlines()
    assert f"training actor-critic in {tmp_path / 'run'} with 1 thread(s)" in lines
    assert "phase critic: update 0 of 4" in lines
    assert any(line.startswith("train 4/4  ") and "actor " in line and "valid CER" in line for line in lines)
    assert lines[-1] == f"finished: {tmp_path / 'run'}"


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (30, "train 1200/20000 0:15:40"),
        (40, "train ━━━━━━━━━━━━ 1200/20000 0:15:40"),
        (60, "train ━━━━━━━━━━━━ 1200/20000 0:15:40  valid CER 25.31"),
        (80, f"train ━━━━━━━━━━━━ 1200/20000 0:15:40  {NEWS}  ll 12.3"),
        (100, f"train ━━━━━━━━━━━━━━━━━━━━━━━━ 1200/20000 0:15:40  {NEWS}  ll 12.3  td 0.0712"),
        (200, f"train ━━━━━━━━━━━━━━━━━━━━━━━━ 1200/20000 0:15:40  {NEWS}  {'  '.join(TERMS)}"),
    ],
)
def test_the_line_fits_the_terminal(width: int, expected: str, clock: list[float]):
    bar = Bar("train", 20000, start=200, pace=True)
    clock[0] = 50.0
    bar.update(1200, NEWS, TERMS)
    drawn = bar.draw(width, 5, 10, plain=False)
    assert drawn.plain == expected
    assert drawn.cell_len <= width


@pytest.mark.parametrize("width", [1, 5, 12, 20, 33, 80, 100, 200])
def test_several_bars_share_one_display(
    width: int, terminal: Terminal, clock: list[float], monkeypatch: pytest.MonkeyPatch
):
    screen = terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    set_up_logging()
    with Bar("seed 1: likelihood", 400) as first, Bar("seed 1: actor-critic+likelihood", 40000) as second:
        clock[0] = 10.0
        first.update(100, "valid CER 3.10 (best 3.00)  12.3/s")
        second.update(1000)
        log.info("a line above them " + "x" * 300)
        with Bar("reading", unit="pairs") as third:
            third.update(12345)
            drawn = drawn_lines(log.handlers[0], width)
    assert all(cell_len(line) <= width for line in drawn)
    if width == 80:
        assert drawn == [
            "seed 1: likelihood              ━━━━━━━━━━━━      100/400 0:00:30  12.3/s",
            "seed 1: actor-critic+likelihood ━━━━━━━━━━━━   1000/40000 0:06:30",
            "reading                         12,345 pairs 0:00:00",
        ]
    shown = screen.getvalue()
    assert "a line above them " + "x" * 300 + "\n" in shown, "whole, so that it can be copied"
    assert shown.count(HIDE_CURSOR) == shown.count(SHOW_CURSOR) == 1


def drawn_lines(display: logging.Handler, width: int) -> list[str]:
    """What the display draws now."""
    assert isinstance(display, Display)
    console = progress.Console(file=Screen(), width=width, force_terminal=True)
    return [line.plain.rstrip() for line in display.__rich_console__(console, console.options)]  # type: ignore[union-attr]


def test_a_bar_is_a_line_every_few_seconds_elsewhere(clock: list[float], capsys: pytest.CaptureFixture[str]):
    set_up_logging()
    with Bar("counting the words", unit="pairs") as bar:
        for number in range(1, 46):
            clock[0] = float(number)
            bar.update(1000 * number)
    with Bar("checking a.tgz", unit="bytes") as bar:
        bar.update(2_500_000, now=True)
    with Bar("fetching a.tgz", 4_000_000, "bytes") as bar:
        bar.update(2_500_000, now=True)
    with Bar("beam 3 on test", 30, "sentences") as bar:
        assert list(bar.over("ab", ord)) == ["a", "b"]
        assert not bar.due
        clock[0] += 15
        assert bar.due
        bar.update(25)
    with Bar("train", 300, start=100, pace=True) as bar:
        clock[0] += 10
        bar.update(200, NEWS, TERMS[:2], now=True)
        clock[0] += 20
        bar.update(250)
    assert capsys.readouterr().err.splitlines() == [
        "counting the words: 15,000 pairs so far",
        "counting the words: 30,000 pairs so far",
        "counting the words: 45,000 pairs so far",
        "checking a.tgz: 2.5 MB",
        "fetching a.tgz: 2.5/4.0 MB",
        "beam 3 on test: 25/30 sentences",
        f"train 200/300  10.0/s  eta 0:00:10  ll 12.3 actor -0.0123  {NEWS}",
    ]


def test_a_handler_of_the_user_s_own_gets_all_lines_and_ours_is_left_out(
    recipe: Path, tmp_path: Path, told: list[str], terminal: Terminal
):
    screen = terminal()
    train(load_recipe(recipe, SHORT), tmp_path / "run")
    assert screen.getvalue() == ""
    assert told[-1] == f"finished: {tmp_path / 'run'}"
    assert any(line.startswith("train 4/4  ") for line in told)
    assert log.propagate


def test_a_handler_that_comes_later_gets_the_lines_of_bars_too(terminal: Terminal, request: pytest.FixtureRequest):
    screen = terminal()
    set_up_logging()
    told = request.getfixturevalue("told")
    with Bar("pairs") as bar:
        bar.update(3, now=True)
    assert told == ["pairs: 3 so far"]
    assert "so far" not in screen.getvalue()


@pytest.mark.parametrize("kind", ["terminal", "log"])
def test_a_level_silences_lines_and_bars(
    kind: str, recipe: Path, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
):
    screen = request.getfixturevalue("terminal")() if kind == "terminal" else None
    log.setLevel(logging.WARNING)
    train(load_recipe(recipe, SHORT), tmp_path / "run")
    [warning] = (screen.getvalue() if screen else capsys.readouterr().err).splitlines()
    assert warning.startswith("warning: the critic explains only")


def test_of_several_processes_the_others_are_silent(capsys: pytest.CaptureFixture[str]):
    set_up_logging()
    with silence():
        log.warning("not heard")
        with Bar("pairs") as bar:
            bar.update(3, now=True)
    log.info("heard")
    assert capsys.readouterr().err == "heard\n"


def test_results_stay_on_standard_output_while_a_bar_is_shown(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    screen = terminal()
    set_up_logging()
    with (tmp_path / "predictions").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        with Bar("predicting", unit="lines") as bar:
            sys.stdout.write("a prediction\n")
            bar.update(1)
    assert (tmp_path / "predictions").read_text() == "a prediction\n"
    assert "a prediction" not in screen.getvalue()


def test_a_terminal_without_control_codes_gets_lines(terminal: Terminal, monkeypatch: pytest.MonkeyPatch):
    screen = terminal()
    monkeypatch.setenv("TERM", "dumb")
    set_up_logging()
    with Bar("pairs") as bar:
        bar.update(3, now=True)
    assert screen.getvalue() == "pairs: 3 so far\n"


def test_a_bar_that_nobody_closed_ends_with_the_process():
    code = (
        "import io, sys\n"
        "class Screen(io.TextIOWrapper):\n"
        "    def isatty(self): return True\n"
        "sys.stderr = Screen(sys.stdout.buffer)\n"
        "from seqcritic.progress import Bar, set_up_logging\n"
        "set_up_logging()\n"
        "kept = Bar('pairs').__enter__()\n"
    )
    environment = {"TERM": "xterm", "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "utf-8"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert shown.stdout.rindex(SHOW_CURSOR) > shown.stdout.rindex(HIDE_CURSOR)
