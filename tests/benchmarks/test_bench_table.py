"""Rows, whether their targets are met, and what they render to."""

from __future__ import annotations

import pytest

from render import BEGIN, END, replaced
from side_by_side.claims import Row, row
from side_by_side.figures import Ratio
from side_by_side.layers import matrices
from side_by_side.session import workload_of
from side_by_side.table import render, render_report

FASTER = row("update against a peer", Ratio(2.5, 2.4, 2.6), target=2.0, notes=("same sizes",))
SHARE = row("rewards", Ratio(3.5, 3.1, 3.9), unit=" %", target=3.0, sense="at most", notes=("all", "same sizes"))


@pytest.mark.parametrize(
    ("sense", "measured", "met"),
    [("at least", 2.0, True), ("at least", 1.99, False), ("at most", 2.0, True), ("at most", 2.01, False)],
)
def test_a_target_is_met_on_its_side(sense: str, measured: float, met: bool):
    assert row("claim", Ratio(measured, 0, 9), target=2.0, sense=sense).met is met


def test_a_row_without_a_target_is_neither_met_nor_missed():
    assert row("claim", Ratio(1, 1, 1)).met is None


def test_rows_survive_json():
    assert Row.from_dict(SHARE.to_dict()) == SHARE
    assert SHARE.to_dict()["met"] is False


def test_the_table_tells_figures_targets_and_numbered_notes():
    lines = render([FASTER, SHARE]).splitlines()
    assert lines[2] == "| update against a peer [1] | 1 | CPU | 2.50× | 2.40 – 2.60 | ≥ 2.00× | yes |"
    assert lines[3] == "| rewards [2, 1] | 1 | CPU | 3.50 % | 3.10 – 3.90 | ≤ 3.00 % | **no** |"
    assert lines[-2:] == ["1. same sizes.", "2. all."]


def report(others: float | None) -> dict[str, object]:
    return {
        "date": "2026-01-01",
        "effort": 1.0,
        "machine": {"processor": "some", "cores": 2, "python": "3.11"},
        "load": {"average_before": [0.5, 0.4, 0.3], "other_cores_mean": others, "tolerated": 0.1},
        "rows": [FASTER.to_dict()],
        "models": [
            {"side": "ours", "workload": "b", "tied": True, "parameters": 1234, "layers": {"a": [8, 2], "b": [8]}}
        ],
    }


def test_a_report_from_a_busy_machine_says_so():
    assert "**Not an idle machine.**" in render_report(report(1.5))
    assert "Not an idle" not in render_report(report(0.05))
    assert "not known" in render_report(report(None))
    assert "| ours | b, tied | 1,234 | 8×2 |" in render_report(report(0.0))


def test_matrices_are_counted_largest_first():
    assert matrices({"a": [3, 2], "b": [10, 2], "c": [3, 2], "bias": [3]}) == "10×2, 2 of 3×2"


def test_a_page_keeps_what_is_outside_its_marks():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replaced(page, "new\n") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert replaced(replaced(page, "new\n"), "new\n") == replaced(page, "new\n")


def test_a_page_without_marks_is_refused():
    with pytest.raises(SystemExit, match="needs one line"):
        replaced("nothing here", "new")


@pytest.mark.parametrize("key", ["workload", "recipe", "size"])
def test_every_model_has_a_workload_to_be_shown_by(key):
    # The table of models is made of text: a Hugging Face model is asked for by its size alone.
    assert workload_of({key: "base", "length": 25}) == "base"
