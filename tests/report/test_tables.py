"""Tables hold every number, in the terminal and in Markdown, and never the word nan."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from seqcritic.contracts.method_registry import registered_methods
from seqcritic.report.comparison import Comparison
from seqcritic.report.comparison_tables import comparison_table, markdown_table
from seqcritic.report.formats import format_compact, format_gain, format_minutes, format_p_value


def print_table(comparison: Comparison, width: int) -> str:
    console = Console(width=width, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(comparison_table(comparison))
    return capture.get()


def test_markdown_golden(make_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_comparison(1)
    assert markdown_table(replace(comparison, rows=comparison.rows[:3])) == "\n".join(
        [
            "| method | CER ↓ valid | CER ↓ | 95% interval | against baseline | p (Holm) | updates | cost per update "
            "| minutes |",
            "| --- |" + 8 * " ---: |",
            "| likelihood | 43.10 | 43.18 | 42.37–44.02 | baseline | – | 24,000 | 1.00× | 10.2 |",
            "| actor-critic | 39.88 | 40.31 | 39.50–41.15 | 6.6% better | 0.004 | 24,000 | 2.61× | 26.7 |",
            "| actor-critic+likelihood | **37.75** | **38.52** | 37.71–39.36 | 10.8% better | <0.001 | 24,000 | 2.93× "
            "| 29.9 |",
            "",
            f"CER signature: `{comparison.signature}`",
            "",
        ]
    )


def test_markdown_with_beam_golden(make_beam_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_beam_comparison(1)
    assert markdown_table(replace(comparison, rows=comparison.rows[:2])) == "\n".join(
        [
            "| method | CER ↓ valid | CER ↓ greedy | 95% interval | against baseline | p | CER ↓ beam 10 "
            "| 95% interval | against baseline | p | ρ | updates | cost per update | minutes |",
            "| --- |" + 13 * " ---: |",
            "| likelihood | 43.10 | 43.18 | 42.37–44.02 | baseline | – | 41.18 | 40.68–41.68 | baseline | – | 0 "
            "| 24,000 | 1.00× | 10.2 |",
            "| actor-critic | **39.88** | **40.31** | 39.50–41.15 | 6.6% better | 0.004 | **40.11** | 39.61–40.61 "
            "| 2.6% better | 0.031 | 0 | 24,000 | 2.61× | 26.7 |",
            "",
            f"CER signature, greedy: `{comparison.signature}`",
            "",
            "CER signature, beam 10: `metric:CER|search:beam:10|rho:tuned-on-valid`",
            "",
        ]
    )


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_terminal_has_a_line_for_beam_beneath_each_method(
    make_beam_comparison: Callable[[int], Comparison], num_seeds: int
) -> None:
    lines = print_table(make_beam_comparison(num_seeds), 80).splitlines()
    start = next(index for index, line in enumerate(lines) if "actor-critic" in line)
    greedy, beam = lines[start], next(line for line in lines[start:] if "beam 10" in line)
    assert "40.31" in greedy
    assert "39.50–41.15" in greedy
    rhos = "0" if num_seeds == 1 else "0 0.2 0.4"
    assert f"beam 10, ρ {rhos}" in beam
    for expected in ("40.11", "39.61–40.61", "0.093"):
        assert expected in beam
        assert expected not in greedy
    assert "24,000" not in beam
    assert "…" not in "".join(lines)
    assert "rho:tuned-on-valid" in "".join(lines).replace("\n", "")


def test_bold_is_what_validation_chose_by_each_search(make_beam_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_beam_comparison(1)
    beam = comparison.rows[0].beam
    assert beam is not None
    best_on_test = replace(comparison.rows[0], score=20.0, beam=replace(beam, score=30.0))
    written = markdown_table(replace(comparison, rows=(best_on_test, *comparison.rows[1:])))
    assert re.findall(r"\*\*([0-9.]+)\*\*", written) == ["37.75", "38.52", "38.02"]
    assert "| 20.00 |" in written


def test_tables_tell_what_the_critic_explains(critic_comparison: Comparison) -> None:
    written = markdown_table(critic_comparison)
    assert "| p (Holm) | critic explains | updates |" in written
    assert "| 0.008 | 62% | 24,000 |" in written
    assert "| – | – | 24,000 |" in written
    assert print_table(critic_comparison, 80).count("critic explains 62%") == 3


def test_long_labels_leave_room_for_the_numbers(comparison: Comparison) -> None:
    rows = (comparison.rows[0], replace(comparison.rows[1], label="reinforce-critic+likelihood"))
    printed = print_table(replace(comparison, rows=rows), 80)
    assert "baseline" in printed
    assert re.search(r"reinforce-critic\b.* .*40\.31", printed)
    assert "+likelihood" in printed


def test_a_score_with_a_long_name_leaves_a_little_room_for_labels(comparison: Comparison) -> None:
    printed = print_table(
        replace(comparison, score_name="semantic similarity to the nearest of several references"), 120
    )
    for expected in ("actor-critic", "42.88", "43.48", "sd\N{NO-BREAK SPACE}0.30"):
        assert expected in printed


def test_no_word_is_broken_in_eighty_columns(comparison: Comparison) -> None:
    rows = [
        replace(comparison.rows[1], label=name, score=200.0 + place) for place, name in enumerate(registered_methods())
    ]
    printed = print_table(replace(comparison, rows=(comparison.rows[0], *rows[1:])), 80)
    assert "worse" in printed
    assert "against" in printed
    for name in registered_methods():
        assert name.rpartition("-")[2] in printed
    assert re.findall(r"10\.2|29\.9", printed), "the last column is whole"


def test_several_seeds_are_shown(comparison: Comparison) -> None:
    assert "| by seed | sd over seeds |" in markdown_table(comparison)
    assert "| 42.88 43.18 43.48 | 0.30 |" in markdown_table(comparison)
    printed = print_table(comparison, 100)
    assert "42.88 43.18 43.48" in printed
    assert printed.count("sd\N{NO-BREAK SPACE}0.30") == 4


def test_one_method_has_no_baseline_columns(make_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_comparison(1)
    single = markdown_table(replace(comparison, rows=comparison.rows[:1], baseline=""))
    assert "| method | CER ↓ | 95% interval | updates | cost per update | minutes |" in single
    assert "baseline" not in single


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_terminal_table_fits_eighty_columns(make_comparison: Callable[[int], Comparison], num_seeds: int) -> None:
    printed = print_table(make_comparison(num_seeds), 80)
    for expected in (
        "actor-critic+likelihood",
        "37.71–39.36",
        "0.001",
        "valid 37.",
        "24,000",
        "2.93×",
        "29.9",
        "baseline",
    ):
        assert expected in printed
    assert "…" not in printed


def test_the_chosen_method_is_bold(comparison: Comparison) -> None:
    printed = print_table(comparison, 100)
    assert "\x1b[1m38.52\x1b[0m" in printed
    assert "\x1b[1m43.18" not in printed
    first, second = comparison.rows[:2]
    curves = tuple(replace(curve, points=comparison.curves[0].points) for curve in comparison.curves)
    tied = replace(comparison, rows=(replace(first, score=40.0), replace(second, score=41.0)), curves=curves)
    assert "**40.00**" in markdown_table(tied)
    assert "**41.00**" in markdown_table(tied)


def test_no_nan_is_printed(comparison: Comparison) -> None:
    broken = replace(
        comparison.rows[1],
        score=math.nan,
        low=math.nan,
        high=math.inf,
        p_value=math.nan,
        cost_per_update=math.inf,
        seconds=math.nan,
        seed_scores=(math.nan, 1.0),
    )
    with_gap = replace(comparison, rows=(comparison.rows[0], broken))
    for printed in (markdown_table(with_gap), print_table(with_gap, 100)):
        assert "nan" not in printed.lower()
        assert "inf" not in printed.lower()
    assert "| actor-critic | 39.88 | – | – | – | – | – 1.00 | – | 24,000 | – | – |" in markdown_table(with_gap)


def test_labels_cannot_break_the_table(comparison: Comparison) -> None:
    rows = (comparison.rows[0], replace(comparison.rows[1], label="a|b\n<b>[red]*x*"))
    odd = replace(comparison, rows=rows)
    assert "| a\\|b \\<b>\\[red]\\*x\\* |" in markdown_table(odd)
    assert "<b>[red]*x*" in print_table(odd, 120)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(36.0, "10.0% better"), (44.0, "10.0% worse"), (40.0, "equal"), (40.001, "<0.1% worse")],
)
def test_gain_in_words(comparison: Comparison, score: float, expected: str) -> None:
    rows = (replace(comparison.rows[0], score=40.0), replace(comparison.rows[1], score=score))
    assert format_gain(replace(comparison, rows=rows), rows[1]) == expected


def test_number_formats() -> None:
    assert [format_p_value(value) for value in (None, 0.0, 0.001, 1.0)] == ["–", "<0.001", "0.001", "1.000"]
    assert [format_minutes(value) for value in (0, 3, 90, 90_000)] == ["0.0", "<0.1", "1.5", "1,500.0"]
    values = (0, 0.5, 950, 2500, 12_000, 1_500_000, -2000)
    assert [format_compact(v) for v in values] == ["0", "0.5", "950", "2.5k", "12k", "1.5M", "-2k"]
