"""The comparison as a table in a terminal of eighty columns."""

from textwrap import wrap
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from seqcritic.report.columns import Column
from seqcritic.report.comparison import Comparison
from seqcritic.report.formats import format_share
from seqcritic.report.tables import (
    list_columns,
    list_signatures,
    name_beam,
    write_rhos,
    write_seeds,
    write_spread,
    write_valid,
)

TERMINAL_COLUMNS = 80
BENEATH = ("valid", "seeds", "spread", "critic")  # columns that stand beneath the label, for want of width


def comparison_table(comparison: Comparison) -> Table:
    """Lay the comparison out for a terminal, the chosen method in bold and the signature beneath.

    Beam search has a line of its own beneath each method's: the columns of both would be too wide.
    """
    signatures = (f"{name}: {signature}" for name, signature in list_signatures(comparison))
    table = Table(
        title=Text(comparison.title),
        caption=Text("\n".join(signatures)),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        padding=0,
    )
    with_beam = comparison.with_beam
    columns = list_columns(comparison)
    shown = [column for column in columns if column.name not in BENEATH and not _is_of_beam(column)]
    room = TERMINAL_COLUMNS - sum(1 + _least_width(column) for column in shown if column.name != "method")
    greedy = _list_lines(comparison, {column.name: column.cells for column in shown}, room)
    for row, line in zip(comparison.rows, greedy, strict=True):
        if len(comparison.rows) > 1:
            line["method"].append(f"\n  valid {write_valid(comparison, row)}", style="not bold dim")
        if row.critic_explains is not None:
            line["method"].append(f"\n  critic explains {format_share(row.critic_explains)}", style="not bold dim")
    beam: list[dict[str, Text]] = [{} for _ in comparison.rows]
    if with_beam is not None:
        labels = tuple(f"  {name_beam(row)}, ρ {write_rhos(row)}" for row in comparison.rows)
        cells = {column.name.removeprefix("beam-"): column.cells for column in columns if _is_of_beam(column)}
        beam = _list_lines(with_beam, {"method": labels, **cells}, room)
    for column in shown:
        heading = Text(_head(column))
        justify: Literal["left", "right"] = "left" if column.name == "method" else "right"
        # Rich first narrows columns without a width: the words of the gain wrap well, numbers would not.
        contents = [heading, *(line[column.name] for line in (*greedy, *beam) if column.name in line)]
        width = max(_measure_width(content) for content in contents) if column.name != "gain" else None
        table.add_column(heading, justify=justify, width=width, min_width=_least_width(column), overflow="fold")
    for first, second in zip(greedy, beam, strict=True):
        table.add_row(*first.values())
        if second:
            table.add_row(*(second.get(column.name, Text()) for column in shown))
    return table


def _least_width(column: Column) -> int:
    """Return what a column needs where its words wrap, which those of the score's heading do not."""
    heading = [_head(column)] if column.name == "score" else column.heading.split()
    return max(map(cell_len, [*heading, *(word for cell in column.cells for word in cell.split())]))


def _head(column: Column) -> str:
    """Return the heading of a column as a terminal shows it, a word on each line."""
    words = column.heading if column.name == "score" else column.heading.replace(" ", "\n")
    return words.removesuffix(" greedy")


def _break_label(label: str, room: int) -> str:
    """Set a label that is longer than its room on two lines, so that a terminal holds the numbers beside it."""
    if len(label) <= room:
        return label
    end = label.rfind("+") if "+" in label else label.rfind("-", 0, room) + 1
    return f"{label[:end]}\n  {label[end:]}" if end > 0 else label


def _is_of_beam(column: Column) -> bool:
    return column.name == "rho" or column.name.startswith("beam-")


def _list_lines(comparison: Comparison, columns: dict[str, tuple[str, ...]], room: int) -> list[dict[str, Text]]:
    """Return the cells of each row by column, the chosen in bold and the scores by seed beneath the label."""
    chosen = {row.label for row in comparison.chosen_rows}
    lines = []
    for index, row in enumerate(comparison.rows):
        cells = {
            name: Text(_break_label(column[index], room) if name == "method" else column[index])
            for name, column in columns.items()
        }
        if row.label in chosen:
            cells["method"].stylize("bold")
            cells["score"].stylize("bold")
        if len(row.seed_scores) > 1:
            seeds = f"{write_seeds(row)}, sd\N{NO-BREAK SPACE}{write_spread(row)}"
            for line in wrap(seeds, room, initial_indent="  ", subsequent_indent="  "):
                cells["method"].append(f"\n{line}", style="not bold dim")
        lines.append(cells)
    return lines


def _measure_width(content: Text) -> int:
    """Measure the longest line of a text in terminal cells."""
    return max((line.cell_len for line in content.split("\n")), default=0)
