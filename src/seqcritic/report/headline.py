"""The result in a sentence or two, and what a careful reader should keep in mind."""

import math

from seqcritic.report.comparison import Comparison, Curve, MethodRow
from seqcritic.report.comparison_tables import name_beam
from seqcritic.report.formats import format_p_value, format_score

SIGNIFICANCE = 0.05


def write_headline(comparison: Comparison) -> str:
    """Say which method validation chose, how it stands to the baseline on test, and whether that could be chance."""
    if comparison.with_beam is None:
        return _write_sentence(comparison)
    beam = name_beam(comparison.rows[0])
    return f"Greedy: {_write_sentence(comparison)} By {beam}: {_write_sentence(comparison.with_beam)}"


def _write_sentence(comparison: Comparison) -> str:
    if not any(math.isfinite(row.score) for row in comparison.rows):
        return "No method reached a finite test score."
    baseline = comparison.baseline_row
    if baseline is None:
        row = comparison.rows[0]
        return f"{row.label} reaches a test score of {_score_with_interval(comparison, row)}."
    chosen = comparison.chosen_rows
    if not chosen:
        return "No method has a validation score, so none is called the best."
    if len(chosen) > 1:
        labels = " and ".join(f"{row.label} (test {comparison.score_name} {format_score(row.score)})" for row in chosen)
        return f"{labels} share the best validation score."
    if chosen[0].label == baseline.label:
        return _baseline_chosen(comparison, baseline)
    return f"{chosen[0].label} {_opening(comparison, chosen[0])}, {_against_baseline(comparison, chosen[0])}."


def list_caveats(comparison: Comparison) -> tuple[str, ...]:
    """State the limits of the numbers that follow from how the comparison was made."""
    caveats: list[str] = []
    if comparison.num_seeds <= 1:
        once = "This is one training run" if len(comparison.rows) == 1 else "Each method was trained once"
        caveats.append(f"{once}: how much training runs differ by chance is not measured.")
    else:
        caveats.append("Intervals are over test sentences alone; sd is the standard deviation over seeds.")
    if comparison.num_tests:
        caveats.append(_describe_tests(comparison))
    unmoved = [curve for curve in comparison.curves if _never_beats_its_start(curve, comparison.lower_is_better)]
    if unmoved:
        caveats.append(
            "Never better on valid than the actor it started from, which is what was evaluated: "
            f"{_name_runs(unmoved, comparison)}."
        )
    return tuple(caveats)


def _describe_tests(comparison: Comparison) -> str:
    """Say by what the best method was chosen and what its p-value is."""
    test = f"that of a paired bootstrap of {comparison.resampled}"
    if comparison.num_seeds > 1:
        test = f"the larger of {test} and that of a t-test over seeds"
    correction = ""
    if comparison.num_tests > 1:
        each = " for each search" if comparison.with_beam else ""
        correction = f", corrected for the {comparison.num_tests} methods tested{each} by Holm's method"
    return f"The method in bold was chosen on validation, by its greedy score; p is {test}{correction}."


def _never_beats_its_start(curve: Curve, lower_is_better: bool) -> bool:
    """Say whether a run was validated before its first update and never better afterwards."""
    # Without a point at its start nothing is known of what it started from.
    if not curve.points or curve.points[0].updates > 0:
        return False
    start = curve.points[0].score
    later = [point.score for point in curve.points[1:] if math.isfinite(point.score)]
    # Equal counts as no better: of equal actors the first is kept, which is the start.
    return bool(later) and (min(later) >= start if lower_is_better else max(later) <= start)


def _name_runs(curves: list[Curve], comparison: Comparison) -> str:
    """Write the methods of some runs, each with how many of its seeds they are where it has several."""
    names = []
    for label in dict.fromkeys(curve.label for curve in curves):
        num_seeds = sum(curve.label == label for curve in comparison.curves)
        share = f" ({sum(curve.label == label for curve in curves)} of {num_seeds} seeds)" if num_seeds > 1 else ""
        names.append(label + share)
    return ", ".join(names)


def _opening(comparison: Comparison, row: MethodRow) -> str:
    return f"is the best on validation; its test score is {_score_with_interval(comparison, row)}"


def _baseline_chosen(comparison: Comparison, baseline: MethodRow) -> str:
    opening = f"The baseline, {baseline.label}, {_opening(comparison, baseline)}"
    others = {
        row.label: (score, row)
        for row in comparison.rows
        if row.label != baseline.label and math.isfinite(row.score)
        if (score := comparison.valid_score(row)) is not None
    }
    if not others:
        return f"{opening}; no other method reached a finite score."
    better = min if comparison.lower_is_better else max
    _, following = better(others.values(), key=lambda each: each[0])
    rival = f"{following.label} at {format_score(following.score)}"
    return f"{opening}; the next on validation, {rival}, is {_against_baseline(comparison, following)}."


def _against_baseline(comparison: Comparison, row: MethodRow) -> str:
    """Write how a row stands to the baseline on test, and whether that could be chance."""
    baseline = comparison.baseline_row
    assert baseline is not None
    rival = f"{baseline.label} at {format_score(baseline.score)}"
    if not math.isfinite(baseline.score):
        return f"and {baseline.label} has no finite one"
    is_better = (row.score < baseline.score) == comparison.lower_is_better
    standing = f"{_gap(comparison, row)} {'better' if is_better else 'worse'} than {rival}"
    if row.score == baseline.score:
        return f"equal to {rival}"
    p_value = comparison.p_value(row)
    if p_value is None:
        return f"{standing}; the difference was not tested"
    chance = "" if p_value < SIGNIFICANCE else ", which could be chance"
    return f"{standing}{chance} ({_p_clause(comparison, p_value)})"


def _gap(comparison: Comparison, row: MethodRow) -> str:
    """Write the size of the difference from the baseline, in points and in percent where that is defined."""
    baseline = comparison.baseline_row
    assert baseline is not None
    points = f"{abs(row.score - baseline.score):.2f} points"
    gain = comparison.gain(row)
    return points if gain is None else f"{points} ({abs(gain):.1f}%)"


def _score_with_interval(comparison: Comparison, row: MethodRow) -> str:
    score = f"{comparison.score_name} {format_score(row.score)}"
    if not (math.isfinite(row.low) and math.isfinite(row.high)):
        return score
    return f"{score} (95% interval {format_score(row.low)} to {format_score(row.high)})"


def _p_clause(comparison: Comparison, p_value: float) -> str:
    written = format_p_value(p_value)
    clause = f"p < {written[1:]}" if written.startswith("<") else f"p = {written}"
    return clause if comparison.num_tests == 1 else f"{clause} by Holm's method for {comparison.num_tests} methods"
