"""The comparison as a table: what its columns are, as Markdown for a README, and in a terminal of eighty columns."""

import math
from collections.abc import Collection
from dataclasses import replace
from textwrap import wrap
from typing import Literal

from rich.cells import cell_len
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
    format_percent,
    format_score,
)
from seqcritic.report.tables import Column, list_cells, markdown_columns, open_grid

TERMINAL_COLUMNS = 80
BENEATH = ("valid", "seeds", "spread", "critic", "rho")  # columns that stand beneath the label, for want of width
_LEAST_ROOM = 12  # for labels, however wide the numbers are


def list_columns(comparison: Comparison) -> tuple[Column, ...]:
    """List what every table shows, leaving out what one method or one seed gives no meaning to.

    A table with little width may set some of it beneath the label of a row.
    """
    rows = comparison.rows
    with_beam = comparison.with_beam
    columns = list_cells(rows, ("method", "method", lambda row: row.label))
    if len(rows) > 1:
        heading = f"{comparison.score_name} {_arrow(comparison)} valid"
        valid = list_cells(rows, ("valid", heading, lambda row: write_valid(comparison, row)))
        columns += [replace(column, bold=_list_chosen(comparison)) for column in valid]
    columns += _list_score_columns(comparison, "", " greedy" if with_beam else "")
    if with_beam is not None:
        columns += _list_score_columns(with_beam, "beam-", f" {name_beam(rows[0])}")
        columns += list_cells(rows, ("rho", "ρ", write_rhos))
    if comparison.num_seeds > 1:
        columns += list_cells(rows, ("seeds", "by seed", write_seeds), ("spread", "sd over seeds", write_spread))
        if with_beam is not None:
            beam = name_beam(rows[0])
            columns += list_cells(
                with_beam.rows,
                ("beam-seeds", f"by seed, {beam}", write_seeds),
                ("beam-spread", f"sd over seeds, {beam}", write_spread),
            )
    if any(row.critic_explains is not None for row in rows):
        columns += list_cells(rows, ("critic", "critic explains", lambda row: format_percent(row.critic_explains)))
    columns += list_cells(
        rows,
        ("updates", "updates", lambda row: format_count(row.updates)),
        ("cost", "cost per update", lambda row: format_cost(row.cost_per_update)),
        ("minutes", "minutes", lambda row: format_minutes(row.seconds)),
    )
    return tuple(columns)


def list_signatures(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """List what each signature is of, and the signature."""
    with_beam = comparison.with_beam
    name = comparison.score_name
    if with_beam is None:
        return ((f"{name} signature", comparison.signature),)
    beam = name_beam(comparison.rows[0])
    return (f"{name} signature, greedy", comparison.signature), (f"{name} signature, {beam}", with_beam.signature)


def list_valid_signatures(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """List the signature of the validation scores, if it is known: that of the test scores is of other sentences."""
    name = f"validation {comparison.score_name} signature"
    return ((name, comparison.valid_signature),) if comparison.valid_signature else ()


def name_beam(row: MethodRow) -> str:
    """Name the beam search a row was evaluated by."""
    assert row.beam is not None
    return f"beam {row.beam.width}"


def markdown_table(comparison: Comparison, hidden: Collection[str] = ()) -> str:
    """Write the comparison as a Markdown table, some columns hidden, the chosen in bold and the signature beneath."""
    columns = [column for column in list_columns(comparison) if column.name not in hidden]
    lines = [markdown_columns(columns)]
    for name, signature in list_signatures(comparison):
        lines += ["", f"{name}: `{signature}`"]
    return "\n".join([*lines, ""])


def _list_score_columns(comparison: Comparison, prefix: str, search: str) -> list[Column]:
    """List the columns of one search: score, interval and, against a baseline, gain and p-value."""
    score, *others = list_cells(
        comparison.rows,
        (
            f"{prefix}score",
            f"{comparison.score_name} {_arrow(comparison)}{search}",
            lambda row: format_score(row.score),
        ),
        (f"{prefix}interval", "95% interval", lambda row: format_interval(row.low, row.high)),
    )
    if comparison.baseline_row is not None:
        others += list_cells(
            comparison.rows,
            (f"{prefix}gain", "against baseline", lambda row: format_gain(comparison, row)),
            (
                f"{prefix}p-value",
                "p (Holm)" if comparison.num_tests > 1 else "p",
                lambda row: format_p_value(comparison.p_value(row)),
            ),
        )
    return [replace(score, bold=_list_chosen(comparison)), *others]


def _list_chosen(comparison: Comparison) -> frozenset[int]:
    """List the rows that validation chose by their positions."""
    return frozenset(comparison.rows.index(row) for row in comparison.chosen_rows)


def _arrow(comparison: Comparison) -> str:
    return "↓" if comparison.lower_is_better else "↑"


def write_valid(comparison: Comparison, row: MethodRow) -> str:
    """Write the validation score of a row, by which it is chosen or not."""
    score = comparison.valid_score(row)
    return format_score(math.nan if score is None else score)


def write_rhos(row: MethodRow) -> str:
    """Write the length rewards of a row, one a seed."""
    assert row.beam is not None
    return " ".join(f"{rho:g}" for rho in row.beam.rhos)


def write_seeds(row: MethodRow) -> str:
    """Write the scores of a row, one a seed."""
    return " ".join(format_score(score) for score in row.seed_scores)


def write_spread(row: MethodRow) -> str:
    """Write how much the scores of a row vary over seeds."""
    return format_score(math.nan if row.seed_deviation is None else row.seed_deviation)


def comparison_table(comparison: Comparison) -> Table:
    """Lay the comparison out for a terminal, the chosen method in bold and the signature beneath.

    Beam search has a line of its own beneath each method's: the columns of both would be too wide.
    """
    signatures = (f"{name}: {signature}" for name, signature in list_signatures(comparison))
    table = open_grid(comparison.title, "\n".join(signatures))
    columns = {column.name: column for column in list_columns(comparison)}
    # Beam search writes into greedy search's columns, a line further down.
    of_beam = {name.removeprefix("beam-"): column for name, column in columns.items() if name.startswith("beam-")}
    shown = {name: column for name, column in columns.items() if name not in BENEATH and not name.startswith("beam-")}
    # One more for the space between columns; what is left of eighty is for labels.
    needed = sum(1 + _least_width(column) for name, column in shown.items() if name != "method")
    room = max(TERMINAL_COLUMNS - needed, _LEAST_ROOM)
    lines = []
    for index, row in enumerate(comparison.rows):
        beneath = _wrap_seeds(row, room)
        if len(comparison.rows) > 1:
            beneath.append(f"valid {write_valid(comparison, row)}")
        if row.critic_explains is not None:
            beneath.append(f"critic explains {format_percent(row.critic_explains)}")
        lines.append(_write_line(_break_label(row.label, room), beneath, shown, index))
        if comparison.with_beam is not None:
            label = _break_label(f"  {name_beam(row)}, ρ {write_rhos(row)}", room)
            lines.append(_write_line(label, _wrap_seeds(comparison.with_beam.rows[index], room), of_beam, index))
    for name, column in shown.items():
        heading = Text(_head(column))
        # Rich first narrows columns without a width: the words of the gain wrap well, numbers would not.
        contents = [heading, *(line[name] for line in lines if name in line)]
        width = max(_measure_width(content) for content in contents) if name != "gain" else None
        side: Literal["left", "right"] = "left" if name == "method" else "right"
        table.add_column(heading, justify=side, width=width, min_width=_least_width(column), overflow="fold")
    for line in lines:
        table.add_row(*(line.get(name, Text()) for name in shown))
    return table


def _write_line(label: str, beneath: list[str], columns: dict[str, Column], index: int) -> dict[str, Text]:
    """Return the cells of one row by column, in bold where validation chose it."""
    line = {"method": Text(label)} | {n: Text(column.cells[index]) for n, column in columns.items() if n != "method"}
    if index in columns["score"].bold:
        line["method"].stylize("bold")
        line["score"].stylize("bold")
    for note in beneath:
        line["method"].append(f"\n  {note}", style="not bold dim")
    return line


def _wrap_seeds(row: MethodRow, room: int) -> list[str]:
    # A space that does not break: "sd" and its number stay on one line.
    seeds = f"{write_seeds(row)}, sd\N{NO-BREAK SPACE}{write_spread(row)}"
    return wrap(seeds, room - 2) if len(row.seed_scores) > 1 else []


def _least_width(column: Column) -> int:
    """Return the least width of a column: its longest word, or the whole heading of the score, which does not wrap."""
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
    # Before the last sign of a combination, else behind the last hyphen that fits.
    end = label.rfind("+") if "+" in label else label.rfind("-", 0, room) + 1
    return f"{label[:end]}\n  {label[end:]}" if end > 0 else label


def _measure_width(content: Text) -> int:
    """Measure the longest line of a text in terminal cells."""
    return max((line.cell_len for line in content.split("\n")), default=0)
