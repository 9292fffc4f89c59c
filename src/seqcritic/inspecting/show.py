"""A prediction's values in the terminal."""

from __future__ import annotations

from seqcritic.report.tables import open_console, values_table
from seqcritic.report.values import ValueTable


def print_values(table: ValueTable) -> None:
    """Print the table."""
    open_console().print(values_table(table))
