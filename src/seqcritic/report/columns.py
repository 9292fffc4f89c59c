"""Tables made of columns: for the terminal, as Markdown, and as HTML."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from seqcritic.report.markup import Markup, element, join, text


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name (for those who style it), its heading, and one cell for each row."""

    name: str
    heading: str
    cells: tuple[str, ...]


def terminal_columns(columns: Sequence[Column], title: str, caption: str = "") -> Table:
    """Lay columns out for a terminal, the first to the left and the others to the right."""
    table = Table(
        title=Text(title),
        caption=Text(caption),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    for index, column in enumerate(columns):
        # Names of rows stay whole; what does not fit wraps in the other columns.
        heading = Text(column.heading.replace(" ", "\n") if index else column.heading)
        table.add_column(heading, justify="right" if index else "left", no_wrap=not index, overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def markdown_columns(columns: Sequence[Column]) -> str:
    """Write columns as a Markdown table."""
    lines = [
        markdown_line([escape_markdown(column.heading) for column in columns]),
        markdown_line(["---:" if index else "---" for index in range(len(columns))]),
    ]
    rows = zip(*(column.cells for column in columns), strict=True)
    return "\n".join(lines + [markdown_line([escape_markdown(cell) for cell in cells]) for cells in rows])


def html_columns(columns: Sequence[Column]) -> Markup:
    """Render columns as a table of the page; the first column names the rows."""
    names = ["method", *(column.name for column in columns[1:])]
    headings = [
        element("th", {"scope": "col", "class": name}, text(column.heading))
        for name, column in zip(names, columns, strict=True)
    ]
    lines = []
    for label, *cells in zip(*(column.cells for column in columns), strict=True):
        rest = [
            element("td", {"class": column.name, "data-heading": column.heading}, text(cell))
            for column, cell in zip(columns[1:], cells, strict=True)
        ]
        lines.append(element("tr", {}, element("th", {"scope": "row", "class": "method"}, text(label)), *rest))
    head = element("thead", {}, element("tr", {}, *headings))
    body = element("tbody", {}, Markup("\n"), join(lines), Markup("\n"))
    return element("div", {"class": "scroll"}, element("table", {"class": "results"}, head, body))


def markdown_line(cells: Sequence[str]) -> str:
    """Put cells between bars."""
    return "| " + " | ".join(cells) + " |"


def escape_markdown(content: str) -> str:
    """Keep a cell on one line and inside its bars; a `<` would otherwise open a tag."""
    escaped = re.sub(r"[\\|*_`\[]|<(?=[A-Za-z/!?])", r"\\\g<0>", content)
    return " ".join(escaped.split())
