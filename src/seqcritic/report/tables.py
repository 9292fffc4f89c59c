"""The comparison as a table: for the terminal and, as Markdown, for a README."""

from collections.abc import Collection
from typing import Literal

from rich import box
from rich.table import Table
from rich.text import Text

from seqcritic.report.columns import Column, escape_markdown, markdown_line
from seqcritic.report.comparison import Comparison, MethodRow
from seqcritic.report.formats import (
    format_cost,
    format_count,
    format_gain,
    format_interval,
    format_minutes,
    format_p_value,
    format_score,
    format_share,
)

LONG_LABEL = 23


def list_columns(comparison: Comparison) -> tuple[Column, ...]:
    """List what every table shows, leaving out what one method or one seed gives no meaning to.

    A table with little width may set some of it beneath the label of a row.
    """
    rows = comparison.rows
    with_beam = comparison.with_beam
    columns = [Column("method", "method", tuple(row.label for row in rows))]
    columns += _list_score_columns(comparison, "", " greedy" if with_beam else "")
    if with_beam is not None:
        columns += _list_score_columns(with_beam, "beam-", f" {name_beam(rows[0])}")
        columns.append(Column("rho", "ρ", tuple(_write_rhos(row) for row in rows)))
    if comparison.num_seeds > 1:
        columns.append(Column("seeds", "by seed", tuple(_write_seeds(row) for row in rows)))
        if with_beam is not None:
            heading = f"by seed, {name_beam(rows[0])}"
            columns.append(Column("beam-seeds", heading, tuple(_write_seeds(row) for row in with_beam.rows)))
    if any(row.critic_explains is not None for row in rows):
        columns.append(Column("critic", "critic explains", tuple(format_share(row.critic_explains) for row in rows)))
    columns += [
        Column("updates", "updates", tuple(format_count(row.updates) for row in rows)),
        Column("cost", "cost per update", tuple(format_cost(row.cost_per_update) for row in rows)),
        Column("minutes", "minutes", tuple(format_minutes(row.seconds) for row in rows)),
    ]
    return tuple(columns)


def list_signatures(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """List what each signature is of, and the signature."""
    with_beam = comparison.with_beam
    name = comparison.score_name
    if with_beam is None:
        return ((f"{name} signature", comparison.signature),)
    beam = name_beam(comparison.rows[0])
    return (f"{name} signature, greedy", comparison.signature), (f"{name} signature, {beam}", with_beam.signature)


def name_beam(row: MethodRow) -> str:
    """Name the beam search a row was judged by."""
    assert row.beam is not None
    return f"beam {row.beam.width}"


def comparison_table(comparison: Comparison) -> Table:
    """Lay the comparison out for a terminal, the best score in bold and the signature beneath.

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
    shown = [column for column in columns if column.name not in ("seeds", "critic") and not _is_of_beam(column)]
    greedy = _list_lines(comparison, {column.name: column.cells for column in shown})
    for row, line in zip(comparison.rows, greedy, strict=True):
        if row.critic_explains is not None:
            line["method"].append(f"\n  critic explains {format_share(row.critic_explains)}", style="not bold dim")
    beam: list[dict[str, Text]] = [{} for _ in comparison.rows]
    if with_beam is not None:
        labels = tuple(f"  {name_beam(row)}, ρ {_write_rhos(row)}" for row in comparison.rows)
        cells = {column.name.removeprefix("beam-"): column.cells for column in columns if _is_of_beam(column)}
        beam = _list_lines(with_beam, {"method": labels, **cells})
    for column in shown:
        words = column.heading if column.name == "score" else column.heading.replace(" ", "\n")
        heading = Text(words.removesuffix(" greedy"))
        justify: Literal["left", "right"] = "left" if column.name == "method" else "right"
        # Rich first narrows columns without a width: the words of the gain wrap well, numbers would not.
        contents = [heading, *(line[column.name] for line in (*greedy, *beam) if column.name in line)]
        width = max(_measure_width(content) for content in contents) if column.name != "gain" else None
        table.add_column(heading, justify=justify, width=width, overflow="fold")
    for first, second in zip(greedy, beam, strict=True):
        table.add_row(*first.values())
        if second:
            table.add_row(*(second.get(column.name, Text()) for column in shown))
    return table


def markdown_table(comparison: Comparison, hidden: Collection[str] = ()) -> str:
    """Write the comparison as a Markdown table, some columns hidden, the best in bold and the signature beneath."""
    columns = [column for column in list_columns(comparison) if column.name not in hidden]
    bold = list_best(comparison)
    lines = [
        markdown_line([escape_markdown(column.heading) for column in columns]),
        markdown_line(["---" if column.name == "method" else "---:" for column in columns]),
    ]
    for index, row in enumerate(comparison.rows):
        cells = {column.name: escape_markdown(column.cells[index]) for column in columns}
        cells |= {name: f"**{cells[name]}**" for name, label in bold if label == row.label}
        lines.append(markdown_line(list(cells.values())))
    for name, signature in list_signatures(comparison):
        lines += ["", f"{name}: `{signature}`"]
    return "\n".join([*lines, ""])


def list_best(comparison: Comparison) -> set[tuple[str, str]]:
    """List the score columns by name, each with the labels of its best rows."""
    best = {("score", row.label) for row in comparison.best_rows}
    if comparison.with_beam is not None:
        best |= {("beam-score", row.label) for row in comparison.with_beam.best_rows}
    return best


def _list_score_columns(comparison: Comparison, prefix: str, search: str) -> list[Column]:
    """List the columns of one search: score, interval and, against a baseline, gain and p-value."""
    rows = comparison.rows
    arrow = "↓" if comparison.lower_is_better else "↑"
    heading = f"{comparison.score_name} {arrow}{search}"
    columns = [
        Column(f"{prefix}score", heading, tuple(format_score(row.score) for row in rows)),
        Column(f"{prefix}interval", "95% interval", tuple(format_interval(row.low, row.high) for row in rows)),
    ]
    if comparison.baseline_row is not None:
        gains = tuple(format_gain(comparison, row) for row in rows)
        columns.append(Column(f"{prefix}gain", "against baseline", gains))
        columns.append(Column(f"{prefix}p-value", "p", tuple(format_p_value(row.p_value) for row in rows)))
    return columns


def _break_label(label: str) -> str:
    """Set a long label on two lines, so that eighty columns hold the numbers beside it."""
    return label.replace("+", "\n  +", 1) if len(label) > LONG_LABEL else label


def _is_of_beam(column: Column) -> bool:
    return column.name == "rho" or column.name.startswith("beam-")


def _list_lines(comparison: Comparison, columns: dict[str, tuple[str, ...]]) -> list[dict[str, Text]]:
    """Return the cells of each row by column, the best in bold and the scores by seed beneath the label."""
    best_labels = {row.label for row in comparison.best_rows}
    lines = []
    for index, row in enumerate(comparison.rows):
        cells = {
            name: Text(_break_label(column[index]) if name == "method" else column[index])
            for name, column in columns.items()
        }
        if row.label in best_labels:
            cells["method"].stylize("bold")
            cells["score"].stylize("bold")
        if len(row.seed_scores) > 1:
            cells["method"].append(f"\n  {_write_seeds(row)}", style="not bold dim")
        lines.append(cells)
    return lines


def _measure_width(content: Text) -> int:
    """Measure the longest line of a text in terminal cells."""
    return max((line.cell_len for line in content.split("\n")), default=0)


def _write_rhos(row: MethodRow) -> str:
    assert row.beam is not None
    return " ".join(f"{rho:g}" for rho in row.beam.rhos)


def _write_seeds(row: MethodRow) -> str:
    return " ".join(format_score(score) for score in row.seed_scores)
