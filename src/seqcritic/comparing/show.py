"""The end of a comparison or an ablation in the terminal: table, plot, and where the report is."""

from __future__ import annotations

from pathlib import Path

from seqcritic.comparing.ablate import PICTURE_FILE
from seqcritic.comparing.compare import CURVES_FILE, REPORT_FILE
from seqcritic.report.ablation import Ablation, list_ablation_columns
from seqcritic.report.comparison import Comparison
from seqcritic.report.comparison_tables import comparison_table
from seqcritic.report.console import open_console
from seqcritic.report.headline import list_caveats
from seqcritic.report.tables import terminal_columns
from seqcritic.report.terminal import terminal_plot


def print_comparison(comparison: Comparison, folder: Path) -> None:
    """Print what a person wants to see first."""
    console = open_console()
    console.print(comparison_table(comparison))
    console.print(terminal_plot(comparison.curves, comparison.score_name), markup=False, highlight=False)
    for note in (*list_caveats(comparison), *comparison.notes):
        console.print(note, markup=False, highlight=False)
    console.print(f"curves: {folder / CURVES_FILE}\nreport: {folder / REPORT_FILE}", markup=False, highlight=False)


def print_ablation(ablation: Ablation, folder: Path) -> None:
    """Print the table, and where the picture is."""
    console = open_console()
    columns = [column for column in list_ablation_columns(ablation) if column.name not in ("seeds", "remark")]
    console.print(terminal_columns(columns, ablation.title))
    for note in ablation.notes:
        console.print(note, markup=False, highlight=False)
    console.print(f"picture: {folder / PICTURE_FILE}", markup=False, highlight=False)
