"""The comparison for other programs: a table of plain numbers (CSV) and one for a paper (LaTeX)."""

import csv
import io
import re
from typing import Any

from seqcritic.report.comparison import Comparison
from seqcritic.report.comparison_tables import list_columns, list_signatures

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "ρ": r"$\rho$",
    "×": r"$\times$",
    "–": "--",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}


def write_csv(comparison: Comparison) -> str:
    """Write one line for each method, with the fields and names of the rows in JSON, unrounded.

    What is nested is `beam.score`, what are several is parted by spaces, and what is unknown is empty.
    """
    name = {"score_name": comparison.score_name}
    chosen = {row.label for row in comparison.chosen_rows}
    rows = [
        _flatten(name | row | {"chosen_on_validation": row["label"] in chosen}) for row in comparison.to_dict()["rows"]
    ]
    stream = io.StringIO()
    # Any row may lack a field, as `beam` without a beam search: the header has those of all.
    writer = csv.DictWriter(stream, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def write_latex(comparison: Comparison) -> str:
    """Write what the table of the page shows as a tabular of booktabs, the chosen in bold, signatures as comments."""
    columns = list_columns(comparison)
    cells = [
        [
            rf"\textbf{{{escape_latex(cell)}}}" if row in column.bold else escape_latex(cell)
            for row, cell in enumerate(column.cells)
        ]
        for column in columns
    ]
    lines = [
        *(f"% {name}: {signature}" for name, signature in list_signatures(comparison)),
        rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
        r"\toprule",
        " & ".join(escape_latex(column.heading) for column in columns) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in zip(*cells, strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join([*lines, ""])


def escape_latex(text: str) -> str:
    """Return text as LaTeX prints it."""
    # Sign by sign: replaced one after the other, the backslashes of the first would be escaped by the next.
    return "".join(_LATEX.get(sign, sign) for sign in re.sub(r"\s+", " ", text))


def _flatten(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            flat[prefix + name] = " ".join("" if each is None else repr(each) for each in value)
        elif name != "beam":  # where there was none
            flat[prefix + name] = "" if value is None else value
    return flat
