"""What a person sees while something works: lines of the logger `seqcritic`, and bars for what takes longer.

    log.info("a line that stays")
    with Bar("beam 10 on test", total=500, unit="sentences") as bar:
        bar.update(120)

Standard output is for results; all this goes to standard error, by a handler that the first public call puts on the
logger unless a user has put one there. In a terminal the bars stand in one live display beneath the lines; elsewhere a
bar is a line every few seconds. `logging.getLogger("seqcritic").setLevel(logging.WARNING)` silences lines and bars.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

log = logging.getLogger("seqcritic")

LINE_SECONDS = 15.0
BAR_WIDTH, NARROW_BAR_WIDTH = 24, 12
WIDE = 100  # columns from which on there is room for the longer bar
SHORTEST_TITLE = 8

Item = TypeVar("Item")


def set_up_logging() -> None:
    """Make the lines and bars visible, unless a user has said where they go; every public call begins with it."""
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)  # the root's level would hide progress from a user's own handler too
    if not log.handlers:
        log.addHandler(Display())
        log.propagate = False  # else the root's handlers would say each line again


@contextmanager
def silence() -> Iterator[None]:
    """Let this process say nothing: of several that train one run, the first speaks."""
    before = log.level
    log.setLevel(logging.CRITICAL + 1)  # above every level there is
    try:
        yield
    finally:
        log.setLevel(before)


class Display(logging.Handler):
    """Writes lines to what is standard error by then; in a terminal with the bars beneath them."""

    def __init__(self) -> None:
        super().__init__()
        self.bars: list[Bar] = []
        self._live: Live | None = None
        self._changing = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line; that of a bar only where the bar cannot be seen."""
        if self._live is None:
            if sys.stderr is not None:  # print would take standard output instead
                print(self.format(record), file=sys.stderr, flush=True)
        elif not getattr(record, "of_bar", False):
            # Broken by the terminal where it is too long, so that a path can be copied whole.
            self._live.console.print(Text(self.format(record)), soft_wrap=True)

    def add(self, bar: Bar) -> bool:
        """Show a bar beneath the others, and return whether there is a terminal to show it in."""
        # Made anew: standard error may be another than when the handler was made.
        console = Console(file=sys.stderr)
        if sys.stderr is None or not console.is_terminal or console.is_dumb_terminal:
            return False
        with self._changing:
            self.bars.append(bar)
            if self._live is None:
                # Only what goes to the terminal may be moved above the bars: predictions may go to a file.
                to_terminal = sys.stdout is not None and sys.stdout.isatty()
                self._live = Live(self, console=console, transient=True, redirect_stdout=to_terminal)
                self._live.start()
        return True

    def remove(self, bar: Bar) -> None:
        """Take a bar away, and give the terminal back with the last."""
        with self._changing:
            # A new list: the display draws from another thread, which may be going through the old one.
            self.bars = [other for other in self.bars if other is not bar]
            if self._live is not None and not self.bars:
                self._live.stop()
                self._live = None

    def close(self) -> None:
        """Give the terminal back; at the end of the process logging closes its handlers."""
        for bar in self.bars:
            self.remove(bar)
        super().close()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The bars as they are drawn, their columns aligned."""
        shown = list(self.bars)  # bars may come and go meanwhile
        titles = max((cell_len(bar.title) for bar in shown), default=0)
        counts = max((len(bar.count()) for bar in shown), default=0)
        for bar in shown:
            yield bar.draw(options.max_width, titles, counts, plain=console.no_color or options.ascii_only)


class Bar:
    """How far something is that takes more than a few seconds; a context manager.

    `total` is None where it is unknown; with the unit `bytes` counts are told in MB. `start` is what was done before.
    With `pace`, a line tells the rate and the time left too, and is said only when it is asked for.
    """

    def __init__(
        self, title: str, total: int | None = None, unit: str = "", *, start: int = 0, pace: bool = False
    ) -> None:
        self.title, self.total, self.unit, self.pace = title, total, unit, pace
        self.done = self._start = start
        self.news: str = ""
        self.terms: Sequence[str] = ()
        self._began = self._said = time.monotonic()  # no change of the clock makes it jump
        self._display: Display | None = None

    def __enter__(self) -> Bar:
        """Show it."""
        displays = (handler for handler in log.handlers if isinstance(handler, Display))
        display = next(displays, None) if log.isEnabledFor(logging.INFO) else None
        if display is not None and display.add(self):
            self._display = display
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """Take it away; more than once does no harm."""
        if self._display is not None:
            self._display.remove(self)
            self._display = None

    @property
    def due(self) -> bool:
        """Whether anybody would see an update now, for callers to whom one costs something."""
        return self._display is not None or self._line_is_due(time.monotonic())

    def update(self, done: int, news: str | None = None, terms: Sequence[str] | None = None, now: bool = False) -> None:
        """Tell how much is done; cheap enough for every line of a file.

        `news` are parted by two spaces; of them, and after them of the `terms`, a terminal shows what fits, a score
        without its best if need be. What is not given stays as it was. With `now`, a line is due at once.
        """
        self.done = done
        self.news = self.news if news is None else news
        self.terms = self.terms if terms is None else terms
        clock = time.monotonic()
        if now or self._line_is_due(clock):
            self._said = clock
            log.info(self.line(), extra={"of_bar": True})

    def over(self, items: Iterable[Item], size: Callable[[Item], int] = lambda item: 1) -> Iterator[Item]:
        """Yield the items and count those that are done with."""
        for item in items:
            yield item
            # After the yield: whoever asks for the next item is done with this one.
            self.update(self.done + size(item))

    def line(self) -> str:
        """All of it for a log."""
        if self.pace:
            rate, left = self._rate(), self._left()
            place = f"{self.title} {self.count()}  {rate:.1f}/s  eta {_clock(0 if left is None else left)}"
        else:
            rest = "" if self.unit == "bytes" else " so far" if self.total is None else f" {self.unit}"
            place = f"{self.title}: {self.count()}{rest}".rstrip()
        return "  ".join(filter(None, (place, " ".join(self.terms), self.news)))

    def count(self) -> str:
        """How much is done, of how much."""
        if self.unit == "bytes":
            total = "" if self.total is None else f"/{self.total / 1e6:,.1f}"
            return f"{self.done / 1e6:,.1f}{total} MB"
        return f"{self.done:,} {self.unit}".rstrip() if self.total is None else f"{self.done}/{self.total}"

    def draw(self, width: int, title_width: int, count_width: int, plain: bool) -> Text:
        """One line of at most `width` columns: title, bar, count, time; then what fits of the news and terms."""
        bar_width = 0 if self.total is None else BAR_WIDTH if width >= WIDE else NARROW_BAR_WIDTH
        left = self._left()
        if self.total is None:
            clock = _clock(time.monotonic() - self._began)
        else:
            clock = "-:--:--" if left is None else _clock(left)
        counted = f"{self.count():>{count_width}} {clock}"
        room = width - len(counted) - 1
        # A title is cut before the bar is left out, and the bar before the count.
        if room < min(title_width, SHORTEST_TITLE) + bar_width + 1:
            bar_width = 0
        title_width = max(0, min(title_width, room - bar_width - (bar_width > 0)))
        title = Text(self.title, "bold")
        title.truncate(title_width, overflow="ellipsis", pad=True)
        text = Text(no_wrap=True, end="\n").append_text(title)
        if self.total is not None and bar_width:
            # More may be done than was announced.
            full = bar_width if self.total == 0 else min(bar_width, bar_width * self.done // self.total)
            text.append(" ").append(("#" if plain else "━") * full, "bar.complete")
            text.append((" " if plain else "━") * (bar_width - full), "bar.back")
        text.append(f" {counted}")
        for part, style in (*((part, "") for part in self.news.split("  ")), *((part, "dim") for part in self.terms)):
            room = width - text.cell_len - 2
            if cell_len(part) > room:
                part = part.partition(" (")[0]  # as of a score with its best: the score
            if part and cell_len(part) <= room:
                text.append("  ").append(part, style)
        text.truncate(width, overflow="crop")
        return text

    def _line_is_due(self, clock: float) -> bool:
        return not self.pace and clock - self._said >= LINE_SECONDS

    def _rate(self) -> float:
        seconds = time.monotonic() - self._began
        return (self.done - self._start) / seconds if seconds else 0.0  # what was done before took no time now

    def _left(self) -> float | None:
        """Seconds to the end by the rate so far; None where either is unknown."""
        rate = self._rate()
        return max(0, self.total - self.done) / rate if rate and self.total is not None else None


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
