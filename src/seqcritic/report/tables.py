"""Tables for the terminal and as Markdown, most of them made of columns; a template makes those of a page."""

import io
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from markupsafe import Markup
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from seqcritic.report.formats import format_probability, format_reward, format_sum, format_value
from seqcritic.report.values import Candidate, Step, ValueTable, show_token

CHOSEN_SIGN, NEXT_SIGN = "●", "◇"
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name (for those who style it), its heading, and one cell for each row."""

    name: str
    heading: str
    cells: tuple[str, ...]
    bold: frozenset[int] = frozenset()  # rows whose cells are
    drawings: tuple[Markup, ...] = ()  # which a page has before the cells

    @property
    def classes(self) -> str:
        """The classes by which the style sheet knows the column; one of beam search is also of its kind."""
        kind = self.name.removeprefix("beam-")
        return kind if kind == self.name else f"{kind} {self.name}"


def list_cells(rows: Sequence[Row], *columns: tuple[str, str, Callable[[Row], str]]) -> list[Column]:
    """Make columns of what is written of each row: a name, a heading, and how it is written."""
    return [Column(name, heading, tuple(write(row) for row in rows)) for name, heading, write in columns]


def open_console() -> Console:
    """Return a console on standard output; signs that its encoding lacks become question marks."""
    # Another stream in its place, as a test or a notebook has, cannot be set.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return Console()


def open_grid(title: str | Text, caption: str, padding: int = 0, has_footer: bool = False) -> Table:
    """Return a table for a terminal that has no columns yet."""
    return Table(
        # As Text, since rich reads markup in plain strings: a label may hold brackets.
        title=Text(title) if isinstance(title, str) else title,
        caption=Text(caption),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        show_footer=has_footer,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        padding=(0, padding, 0, 0),
    )


def terminal_columns(columns: Sequence[Column], title: str, caption: str = "") -> Table:
    """Lay columns out for a terminal, the first to the left and the others to the right."""
    table = open_grid(title, caption, padding=1)
    for index, column in enumerate(columns):
        # Names of rows stay whole; what does not fit wraps in the other columns.
        heading = Text(column.heading.replace(" ", "\n") if index else column.heading)
        table.add_column(heading, justify="right" if index else "left", no_wrap=not index, overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def markdown_columns(columns: Sequence[Column]) -> str:
    """Write columns as a Markdown table, the first to the left and the others to the right."""
    written = []
    for index, column in enumerate(columns):
        cells = [escape_markdown(cell) for cell in column.cells]
        bold = [f"**{cell}**" if row in column.bold else cell for row, cell in enumerate(cells)]
        written.append([escape_markdown(column.heading), "---:" if index else "---", *bold])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*written, strict=True))


def escape_markdown(content: str) -> str:
    """Keep a cell on one line and inside its bars; a `<` would otherwise open a tag."""
    escaped = re.sub(r"[\\|*_`\[]|<(?=[A-Za-z/!?])", r"\\\g<0>", content)
    return " ".join(escaped.split())


def values_table(table: ValueTable) -> Table:
    """Lay a prediction out for a terminal, after the paper's table of best words by Q̂.

    It has a line for each chosen token, and the score as the sum of the rewards.
    """
    caption = [
        f"score: {table.score_name}",
        "bold: the chosen token; underlined: the reference's next token",
        table.note,
    ]
    grid = open_grid(_write_title(table), "\n".join(line for line in caption if line), has_footer=True)
    grid.add_column("token", footer="score", overflow="fold")
    grid.add_column("Q̂", justify="right", no_wrap=True)
    grid.add_column("p", justify="right", no_wrap=True)
    grid.add_column("largest Q̂", overflow="fold")
    grid.add_column("likeliest", overflow="fold")
    grid.add_column("reward", justify="right", no_wrap=True, footer=format_sum(table.score))
    for step, following in zip(table.steps, table.expected, strict=True):
        grid.add_row(
            Text(show_token(step.token), style="bold"),
            format_value(step.value),
            format_probability(step.probability),
            _list_candidates(step.best, step, following, lambda one: format_value(one.value)),
            _list_candidates(step.likeliest, step, following, lambda one: format_probability(one.probability)),
            format_reward(step.reward),
        )
    return grid


def _write_title(table: ValueTable) -> Text:
    lines = (
        ("source", table.write(table.source)),
        ("reference", table.write(table.reference)),
        ("prediction", table.prediction),
    )
    return Text(table.title).append("".join(f"\n{name:10}  {content}" for name, content in lines), style="not bold")


def _list_candidates(
    candidates: Sequence[Candidate], step: Step, following: str, write: Callable[[Candidate], str]
) -> Text:
    entries = []
    for candidate in candidates:
        styles = ["bold"] * (candidate.token == step.token) + ["underline"] * (candidate.token == following)
        entry = Text(show_token(candidate.token), style=" ".join(styles))
        entries.append(entry.append(f"({write(candidate)})", style="not underline not bold"))
    return Text(" ").join(entries)
