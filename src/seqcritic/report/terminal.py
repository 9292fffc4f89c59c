"""What commands print in a terminal: learning curves in plain text, a diagnosis, the values along a prediction."""

from collections.abc import Sequence
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

from seqcritic.report.comparison import Curve
from seqcritic.report.diagnosis import Diagnosis
from seqcritic.report.diagnosis_tables import LEGEND, describe_row, list_estimator_columns, write_verdict
from seqcritic.report.formats import format_compact
from seqcritic.report.scales import (
    Range,
    Series,
    compute_range,
    describe_outside,
    group_series,
    interpolate,
    list_outside,
    nice_ticks,
    score_range,
)
from seqcritic.report.tables import open_console, terminal_columns, values_table
from seqcritic.report.values import ValueTable

WIDE_ONLY = ("alignment", "aligned-samples")  # columns for which eighty characters are too few
SYMBOLS = "ox+*#@%&abcdefghijklmnpqrstuvwyz=~$"


def terminal_plot(curves: Sequence[Curve], score_name: str, width: int = 72, height: int = 16) -> str:
    """Plot the mean curve of every method with characters.

    No line is longer than `width` (at least 40); the plot itself has `height` rows (at least 4).
    """
    if width < 40 or height < 4:
        raise ValueError(f"a terminal plot needs 40 columns and 4 rows, found {width} and {height}")
    series = group_series(curves)
    if not series:
        return f"validation {score_name}: no learning curve was recorded"
    scores, computes = score_range(series), compute_range(series)
    ticks = nice_ticks(scores, max(height // 3, 2))
    # By row, so that ticks which fall on one row are written once.
    tick_rows = {_row(tick, scores, height): format_compact(tick) for tick in ticks}
    margin = max(len(tick) for tick in tick_rows.values()) + 1
    canvas = _draw(series, computes, scores, width - margin - 1, height)
    lines = [f"validation {score_name}"]
    for row in range(height):
        axis = "┤" if row in tick_rows else "│"
        lines.append(f"{tick_rows.get(row, ''):>{margin}}{axis}{''.join(canvas[row])}".rstrip())
    lines += _horizontal_axis(computes, margin, width)
    legend = [f"{_symbol(index)} {one.label}" for index, one in enumerate(series)]
    lines += _flow(legend, width)
    lines += wrap(describe_outside(list_outside(series, scores)), width)
    return "\n".join(lines)


def _draw(series: Sequence[Series], computes: Range, scores: Range, width: int, height: int) -> list[list[str]]:
    claims: list[list[list[str]]] = [[[] for _ in range(width)] for _ in range(height)]
    for index, one in enumerate(series):
        points = one.main
        first, last = (_column(points[end].compute, computes, width) for end in (0, -1))
        for column in range(first, last + 1):
            compute = computes.low + column / (width - 1) * (computes.high - computes.low)
            # A column's middle may lie a little outside of the curve; its ends stand for that.
            within = min(max(compute, points[0].compute), points[-1].compute)
            score = scores.clamp(interpolate(points, within).score)
            claims[_row(score, scores, height)][column].append(_symbol(index))
    # Curves that run together take turns, so that none hides another.
    return [[cell[column % len(cell)] if cell else " " for column, cell in enumerate(row)] for row in claims]


def _horizontal_axis(computes: Range, margin: int, width: int) -> list[str]:
    plot_width = width - margin - 1
    line = ["─"] * plot_width
    labels = [" "] * width
    free_from = 0
    for tick in nice_ticks(computes, plot_width // 12):
        column = _column(tick, computes, plot_width)
        line[column] = "┬"
        label = format_compact(tick)
        start = min(max(margin + 1 + column - len(label) // 2, 0), width - len(label))
        # A label that would touch the one before is left out; its mark on the axis stays.
        if start >= free_from:
            labels[start : start + len(label)] = label
            free_from = start + len(label) + 1
    caption = "compute (likelihood updates)"
    return [
        f"{'└':>{margin + 1}}{''.join(line)}",
        "".join(labels).rstrip(),
        f"{'':{margin + 1}}{caption:^{plot_width}}".rstrip(),
    ]


def _flow(entries: Sequence[str], width: int) -> list[str]:
    """Set entries side by side, as many to a line as fit."""
    lines: list[str] = []
    for entry in entries:
        short = entry if cell_len(entry) <= width else f"{set_cell_size(entry, width - 1)}…"
        if lines and cell_len(lines[-1]) + 3 + cell_len(short) <= width:
            lines[-1] += f"   {short}"
        else:
            lines.append(short)
    return lines


def _symbol(index: int) -> str:
    return SYMBOLS[index % len(SYMBOLS)]


def _column(compute: float, computes: Range, width: int) -> int:
    return round(computes.fraction(compute) * (width - 1))


def _row(score: float, scores: Range, height: int) -> int:
    return round((1 - scores.fraction(score)) * (height - 1))


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print one table for each checkpoint, what it shows, and what the columns mean."""
    console = open_console()
    for row in diagnosis.rows:
        columns = [column for column in list_estimator_columns(row) if column.name not in WIDE_ONLY]
        console.print(terminal_columns(columns, row.title))
        console.print(f"{describe_row(row)}\n{write_verdict(row)}\n", markup=False, highlight=False)
    console.print(LEGEND, markup=False, highlight=False)


def print_values(table: ValueTable) -> None:
    """Print the table."""
    open_console().print(values_table(table))
