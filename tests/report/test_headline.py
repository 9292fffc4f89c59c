"""The headline says what the numbers say, also when they disappoint."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from seqcritic.report.comparison import Comparison, Curve, Point
from seqcritic.report.headline import list_caveats, write_headline


def change_rows(
    comparison: Comparison, scores: list[float], p_values: list[float | None], valid: list[float] | None = None
) -> Comparison:
    """Give the first rows these scores, on valid those on test unless they are given too; one seed each."""
    rows = tuple(
        replace(row, score=score, low=score - 1, high=score + 1, p_value=p_value, seed_scores=(score,))
        for row, score, p_value in zip(comparison.rows, scores, p_values, strict=False)
    )
    curves = tuple(
        Curve(row.label, 1, (Point(0.0, 0, 99.0), Point(1.0, 1, score)))
        for row, score in zip(rows, valid or scores, strict=True)
    )
    return replace(comparison, rows=rows, curves=curves)


@pytest.mark.parametrize(
    ("scores", "p_values", "expected"),
    [
        (
            [40.0, 36.0],
            [None, 0.0002],
            "actor-critic is the best on validation; its test score is CER 36.00 (95% interval 35.00 to 37.00), "
            "4.00 points (10.0%) better than likelihood at 40.00 (p < 0.001).",
        ),
        (
            [40.0, 39.6],
            [None, 0.31],
            "actor-critic is the best on validation; its test score is CER 39.60 (95% interval 38.60 to 40.60), "
            "0.40 points (1.0%) better than likelihood at 40.00, which could be chance (p = 0.310).",
        ),
        (
            [40.0, 36.0],
            [None, None],
            "actor-critic is the best on validation; its test score is CER 36.00 (95% interval 35.00 to 37.00), "
            "4.00 points (10.0%) better than likelihood at 40.00; the difference was not tested.",
        ),
        (
            [40.0, 44.0, 42.0],
            [None, 0.001, 0.02],
            "The baseline, likelihood, is the best on validation; its test score is CER 40.00 (95% interval 39.00 to "
            "41.00); the next on validation, actor-critic+likelihood at 42.00, is 2.00 points (5.0%) worse than "
            "likelihood at 40.00 (p = 0.020 by Holm's method for 2 methods).",
        ),
        (
            [40.0, 40.4],
            [None, 0.6],
            "The baseline, likelihood, is the best on validation; its test score is CER 40.00 (95% interval 39.00 to "
            "41.00); the next on validation, actor-critic at 40.40, is 0.40 points (1.0%) worse than likelihood at "
            "40.00, which could be chance (p = 0.600).",
        ),
        (
            [40.0, math.nan],
            [None, None],
            "The baseline, likelihood, is the best on validation; its test score is CER 40.00 (95% interval 39.00 to "
            "41.00); no other method reached a finite score.",
        ),
        (
            [40.0, 40.0],
            [None, 1.0],
            "likelihood (test CER 40.00) and actor-critic (test CER 40.00) share the best validation score.",
        ),
        ([40.0], [None], "likelihood reaches a test score of CER 40.00 (95% interval 39.00 to 41.00)."),
        ([math.nan], [None], "No method reached a finite test score."),
    ],
)
def test_headline(comparison: Comparison, scores: list[float], p_values: list[float | None], expected: str) -> None:
    assert write_headline(change_rows(comparison, scores, p_values)) == expected


def test_the_best_method_is_chosen_on_validation(comparison: Comparison) -> None:
    changed = change_rows(comparison, [40.0, 38.0, 36.0], [None, 0.03, 0.0002], valid=[41.0, 39.0, 39.5])
    assert write_headline(changed) == (
        "actor-critic is the best on validation; its test score is CER 38.00 (95% interval 37.00 to 39.00), "
        "2.00 points (5.0%) better than likelihood at 40.00 (p = 0.030 by Holm's method for 2 methods)."
    )
    worse = change_rows(comparison, [40.0, 42.0], [None, 0.001], valid=[41.0, 39.0])
    assert write_headline(worse).endswith("2.00 points (5.0%) worse than likelihood at 40.00 (p = 0.001).")
    assert write_headline(replace(changed, curves=())) == (
        "No method has a validation score, so none is called the best."
    )


def test_the_correction_can_take_the_significance_away(comparison: Comparison) -> None:
    alone = change_rows(comparison, [40.0, 38.0], [None, 0.03])
    among = change_rows(comparison, [40.0, 38.0, 39.0], [None, 0.03, 0.2])
    assert "better than likelihood at 40.00 (p = 0.030)" in write_headline(alone)
    assert "which could be chance (p = 0.060 by Holm's method for 2 methods)" in write_headline(among)


def test_headline_of_a_score_that_should_rise(comparison: Comparison) -> None:
    rising = replace(
        change_rows(comparison, [20.0, 25.0], [None, 0.01], valid=[100.0, 101.0]),
        lower_is_better=False,
        score_name="BLEU",
    )
    expected = "BLEU 25.00 (95% interval 24.00 to 26.00), 5.00 points (25.0%) better than likelihood at 20.00"
    assert expected in write_headline(rising)


def test_caveats_depend_on_seeds_and_tests(make_comparison: Callable[[int], Comparison]) -> None:
    several = replace(make_comparison(3), resampled="seeds and sentences")
    assert list_caveats(several) == (
        "Intervals are over test sentences alone; sd is the standard deviation over seeds.",
        "The method in bold was chosen on validation, by its greedy score; p is the larger of that of a paired "
        "bootstrap of seeds and sentences and that of a t-test over seeds, corrected for the 3 methods tested by "
        "Holm's method.",
    )
    once = make_comparison(1)
    assert list_caveats(once) == (
        "Each method was trained once: how much training runs differ by chance is not measured.",
        "The method in bold was chosen on validation, by its greedy score; p is that of a paired bootstrap of "
        "sentences, corrected for the 3 methods tested by Holm's method.",
    )
    assert not list_caveats(replace(once, rows=once.rows[:2]))[1].endswith("Holm's method.")
    single = replace(once, rows=once.rows[:1])
    assert list_caveats(single) == (
        "This is one training run: how much training runs differ by chance is not measured.",
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_methods_that_never_beat_their_start_are_named(make_comparison: Callable[[int], Comparison], sign: int) -> None:
    def curve(label: str, seed: int, *scores: float) -> Curve:
        return Curve(label, seed, tuple(Point(100.0 * i, i, sign * score) for i, score in enumerate(scores)))

    curves = (
        curve("likelihood", 0, 40.0, 39.0, 41.0),
        curve("likelihood", 1, 40.0),
        curve("actor-critic", 0, 40.0, 40.0, 55.0),
        curve("actor-critic", 1, 40.0, math.nan, 39.9),
        curve("reinforce-critic", 0, 40.0, math.nan, 41.0),
    )
    caveats = list_caveats(replace(make_comparison(2), curves=curves, lower_is_better=sign == 1))
    assert caveats[-1] == (
        "Never better on valid than the actor it started from, which is what was evaluated: "
        "actor-critic (1 of 2 seeds), reinforce-critic."
    )
    late = Curve("likelihood", 0, (Point(0.0, 100, 40.0), Point(1.0, 200, 41.0)))
    assert "Never better" not in " ".join(list_caveats(replace(make_comparison(2), curves=(late,))))


def test_both_searches_have_their_sentence(make_beam_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_beam_comparison(1)
    greedy, beam = write_headline(comparison).split(" By beam 10: ")
    alone = replace(comparison, rows=tuple(replace(row, beam=None) for row in comparison.rows))
    assert greedy == f"Greedy: {write_headline(alone)}"
    assert beam.startswith(
        "actor-critic+likelihood is the best on validation; its test score is CER 38.02 (95% interval 37.52 to 38.52)"
    )
    assert beam.endswith(
        "better than likelihood at 41.18, which could be chance (p = 0.093 by Holm's method for 3 methods)."
    )
    assert "the 3 methods tested for each search by Holm's method" in " ".join(list_caveats(comparison))
