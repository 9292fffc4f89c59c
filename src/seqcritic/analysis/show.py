"""A diagnosis in the terminal."""

from __future__ import annotations

from seqcritic.report.diagnosis import Diagnosis
from seqcritic.report.diagnosis_tables import LEGEND, describe_row, list_estimator_columns, write_verdict
from seqcritic.report.tables import open_console, terminal_columns, values_table
from seqcritic.report.values import ValueTable

WIDE_ONLY = ("alignment", "aligned-samples")  # columns for which eighty places are too few


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
