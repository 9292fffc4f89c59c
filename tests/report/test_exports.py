"""The table for other programs and for papers."""

import csv
import io
import re
from dataclasses import replace

from seqcritic.report.comparison import Comparison
from seqcritic.report.exports import escape_latex, write_csv, write_latex


def test_csv_holds_the_rows_as_json_has_them(comparison: Comparison) -> None:
    lines = list(csv.DictReader(io.StringIO(write_csv(comparison))))
    expected = comparison.to_dict()["rows"]
    assert [line["label"] for line in lines] == [row["label"] for row in expected]
    for line, row in zip(lines, expected, strict=True):
        assert float(line["score"]) == row["score"]
        assert float(line["low"]) == row["low"]
        assert line["p_value"] == ("" if row["p_value"] is None else repr(row["p_value"]))
        assert [float(score) for score in line["seed_scores"].split()] == list(row["seed_scores"])
        assert line["score_name"] == comparison.score_name
    chosen = [line["label"] for line in lines if line["chosen_on_validation"] == "True"]
    assert chosen == comparison.to_dict()["chosen_on_validation"]


def test_csv_of_a_label_with_commas_and_quotes(comparison: Comparison) -> None:
    label = 'a, "b"\nc'
    row = replace(comparison.rows[0], label=label)
    [line] = csv.DictReader(io.StringIO(write_csv(replace(comparison, rows=(row,)))))
    assert line["label"] == label


def test_latex_has_the_cells_of_the_table(comparison: Comparison) -> None:
    text = write_latex(comparison)
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(lines) == len(comparison.rows)
    columns = re.search(r"\\begin\{tabular\}\{(l+r+)\}", text)
    assert columns is not None
    assert all(line.count(" & ") == len(columns.group(1)) - 1 for line in [*lines, text.splitlines()[3]])
    [bold] = [line for line in lines if r"\textbf" in line]
    assert bold.startswith(comparison.chosen_rows[0].label)
    assert text.startswith("% ")
    assert comparison.signature in text.splitlines()[0]


def test_latex_escapes_what_it_reads_otherwise() -> None:
    assert escape_latex("50% of a_b & {c} $x #1 ~^\\") == (
        r"50\% of a\_b \& \{c\} \$x \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}"
    )
    assert escape_latex("CER ↓ <0.001 1.0–2.0 ρ\n2×") == r"CER $\downarrow$ $<$0.001 1.0--2.0 $\rho$ 2$\times$"
