"""The plot in plain text keeps to its size and shows every method."""

import math

import pytest
from rich.cells import cell_len

from seqcritic.report.comparison import Comparison, Curve, Point
from seqcritic.report.terminal import terminal_plot


def make_curve(label: str, scores: list[float]) -> Curve:
    return Curve(label, 0, tuple(Point(100.0 * i, i, score) for i, score in enumerate(scores)))


def test_golden_plot() -> None:
    curves = [make_curve("down", [40.0, 20.0]), make_curve("flat", [30.0, 30.0])]
    assert terminal_plot(curves, "CER", width=40, height=5).split("\n") == [
        "validation CER",
        " 40┤oooo",
        "   │    ooooooooo",
        " 30┤xxxxxxxxxxxxxxoxoxoxoxoxxxxxxxxxxxxx",
        "   │                       ooooooooo",
        " 20┤                                oooo",
        "   └┬─────────────────┬────────────────┬",
        "    0                50              100",
        "        compute (likelihood updates)",
        "o down   x flat",
    ]


@pytest.mark.parametrize(("width", "height"), [(40, 4), (72, 16), (100, 30)])
def test_plot_keeps_to_its_size(comparison: Comparison, width: int, height: int) -> None:
    curves = [*comparison.curves, make_curve("動作主評論家" * 20, [40.0, 41.0])]
    lines = terminal_plot(curves, "CER", width, height).split("\n")
    assert max(cell_len(line) for line in lines) <= width
    assert sum("│" in line or "┤" in line for line in lines) == height


def test_legend_names_every_method_and_spikes_are_noted(comparison: Comparison) -> None:
    plot = terminal_plot(comparison.curves, "CER")
    for entry in ("o likelihood", "x actor-critic", "+ actor-critic+likelihood", "* reinforce-critic"):
        assert entry in plot
    assert "lie beyond the drawn range." in plot


@pytest.mark.parametrize("scores", [[42.0], [42.0, 42.0], [math.nan, 3.0, math.inf, 4.0], [1e9, 3e9]])
def test_any_values_can_be_plotted(scores: list[float]) -> None:
    plot = terminal_plot([make_curve("a", scores)], "CER")
    assert any(line.endswith("o") and ("┤" in line or "│" in line) for line in plot.split("\n"))
    assert "nan" not in plot


def test_nothing_to_plot_is_said() -> None:
    assert terminal_plot([], "CER") == "validation CER: no learning curve was recorded"


def test_too_small_a_plot_is_refused() -> None:
    with pytest.raises(ValueError, match="40 columns and 4 rows"):
        terminal_plot([], "CER", width=20)
