"""The comparison as a table: for the terminal and, as Markdown, for a README."""

import re
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.table import Table
from rich.text import Text

from seqcritic.report.comparison import Comparison, MethodRow
from seqcritic.report.formats import (
    format_cost,
    format_count,
    format_gain,
    format_interval,
    format_minutes,
    format_p_value,
    format_score,
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name (for those who style it), its heading, and one cell for each row."""

    name: str
    heading: str
    cells: tuple[str, ...]


def list_columns(comparison: Comparison) -> tuple[Column, ...]:
    """List what every table shows, leaving out what one method or one seed gives no meaning to."""
    rows = comparison.rows
    arrow = "↓" if comparison.lower_is_better else "↑"
    columns = [
        Column("method", "method", tuple(row.label for row in rows)),
        Column("score", f"{comparison.score_name} {arrow}", tuple(format_score(row.score) for row in rows)),
        Column("interval", "95% interval", tuple(format_interval(row.low, row.high) for row in rows)),
    ]
    if comparison.baseline_row is not None:
        gains = tuple(format_gain(comparison, row) for row in rows)
        columns.append(Column("gain", "against baseline", gains))
        columns.append(Column("p-value", "p", tuple(format_p_value(row.p_value) for row in rows)))
    if comparison.num_seeds > 1:
        columns.append(Column("seeds", "by seed", tuple(_write_seeds(row) for row in rows)))
    columns += [
        Column("updates", "updates", tuple(format_count(row.updates) for row in rows)),
        Column("cost", "cost per update", tuple(format_cost(row.cost_per_update) for row in rows)),
        Column("minutes", "minutes", tuple(format_minutes(row.seconds) for row in rows)),
    ]
    return tuple(columns)


def comparison_table(comparison: Comparison) -> Table:
    """Lay the comparison out for a terminal, the best score in bold and the signature beneath."""
    table = Table(
        title=Text(comparison.title),
        caption=Text(f"{comparison.score_name} signature: {comparison.signature}"),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        padding=0,
    )
    columns = [column for column in list_columns(comparison) if column.name != "seeds"]
    best_labels = {row.label for row in comparison.best_rows}
    cells = {column.name: [Text(cell) for cell in column.cells] for column in columns}
    for row, method, score in zip(comparison.rows, cells["method"], cells["score"], strict=True):
        if row.label in best_labels:
            method.stylize("bold")
            score.stylize("bold")
        if len(row.seed_scores) > 1:
            method.append(f"\n  {_write_seeds(row)}", style="not bold dim")
    for column in columns:
        heading = Text(column.heading.replace(" ", "\n") if column.name != "score" else column.heading)
        justify: Literal["left", "right"] = "left" if column.name == "method" else "right"
        # Rich first narrows columns without a width: the words of the gain wrap well, numbers would not.
        width = max(_measure_width(cell) for cell in (heading, *cells[column.name]))
        is_fixed = column.name != "gain"
        table.add_column(heading, justify=justify, width=width if is_fixed else None, overflow="fold")
    for line in zip(*cells.values(), strict=True):
        table.add_row(*line)
    return table


def markdown_table(comparison: Comparison) -> str:
    """Write the comparison as a Markdown table, the best score in bold and the signature beneath."""
    columns = list_columns(comparison)
    best_labels = {row.label for row in comparison.best_rows}
    lines = [
        _markdown_line([_escape_markdown(column.heading) for column in columns]),
        _markdown_line(["---" if column.name == "method" else "---:" for column in columns]),
    ]
    for index, row in enumerate(comparison.rows):
        cells = {column.name: _escape_markdown(column.cells[index]) for column in columns}
        if row.label in best_labels:
            cells["score"] = f"**{cells['score']}**"
        lines.append(_markdown_line(list(cells.values())))
    lines += ["", f"{comparison.score_name} signature: `{comparison.signature}`", ""]
    return "\n".join(lines)


def _measure_width(content: Text) -> int:
    """Measure the longest line of a text in terminal cells."""
    return max((line.cell_len for line in content.split("\n")), default=0)


def _write_seeds(row: MethodRow) -> str:
    return " ".join(format_score(score) for score in row.seed_scores)


def _markdown_line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escape_markdown(text: str) -> str:
    """Keep a cell on one line and inside its bars; a `<` would otherwise open a tag."""
    escaped = re.sub(r"[\\|*_`\[]|<(?=[A-Za-z/!?])", r"\\\g<0>", text)
    return " ".join(escaped.split())
