"""The result in a sentence or two, and what a careful reader should keep in mind."""

import math

from seqcritic.report.comparison import Comparison, Curve, MethodRow
from seqcritic.report.formats import format_p_value, format_score
from seqcritic.report.tables import name_beam

SIGNIFICANCE = 0.05


def write_headline(comparison: Comparison) -> str:
    """Say who is best, by how much against the baseline, and whether that could be chance, for each search."""
    if comparison.with_beam is None:
        return _write_sentence(comparison)
    beam = name_beam(comparison.rows[0])
    return f"Greedy: {_write_sentence(comparison)} By {beam}: {_write_sentence(comparison.with_beam)}"


def _write_sentence(comparison: Comparison) -> str:
    best_rows = comparison.best_rows
    if not best_rows:
        return "No method reached a finite test score."
    baseline = comparison.baseline_row
    if baseline is None:
        return f"{best_rows[0].label} reaches a test score of {_score_with_interval(comparison, best_rows[0])}."
    if len(best_rows) > 1:
        labels = " and ".join(row.label for row in best_rows)
        score = format_score(best_rows[0].score)
        return f"{labels} share the best test score, {comparison.score_name} {score}."
    best = best_rows[0]
    if best.label == baseline.label:
        return _baseline_wins(comparison, baseline)
    return _challenger_wins(comparison, best, baseline)


def list_caveats(comparison: Comparison) -> tuple[str, ...]:
    """State the limits of the numbers that follow from how the comparison was made."""
    caveats: list[str] = []
    if comparison.num_seeds <= 1:
        once = "This is one training run" if len(comparison.rows) == 1 else "Each method was trained once"
        caveats.append(f"{once}: how much training runs differ by chance is not measured.")
    rows = comparison.rows + (comparison.with_beam.rows if comparison.with_beam else ())
    num_tests = sum(row.p_value is not None for row in rows)
    if num_tests > 1:
        caveats.append(f"The p-values are not corrected for the {num_tests} comparisons made.")
    unmoved = [curve for curve in comparison.curves if _never_beats_its_start(curve, comparison.lower_is_better)]
    if unmoved:
        caveats.append(
            "Never better on valid than the actor it started from, which is what was judged: "
            f"{_name_runs(unmoved, comparison)}."
        )
    return tuple(caveats)


def _never_beats_its_start(curve: Curve, lower_is_better: bool) -> bool:
    """Say whether a run was validated before its first update and never better afterwards."""
    if not curve.points or curve.points[0].updates > 0:
        return False
    start = curve.points[0].score
    later = [point.score for point in curve.points[1:] if math.isfinite(point.score)]
    return bool(later) and (min(later) >= start if lower_is_better else max(later) <= start)


def _name_runs(curves: list[Curve], comparison: Comparison) -> str:
    """Write the methods of some runs, each with how many of its seeds they are where it has several."""
    names = []
    for label in dict.fromkeys(curve.label for curve in curves):
        num_seeds = sum(curve.label == label for curve in comparison.curves)
        share = f" ({sum(curve.label == label for curve in curves)} of {num_seeds} seeds)" if num_seeds > 1 else ""
        names.append(label + share)
    return ", ".join(names)


def _challenger_wins(comparison: Comparison, best: MethodRow, baseline: MethodRow) -> str:
    opening = f"{best.label} has the best test score: {_score_with_interval(comparison, best)}"
    rival = f"{baseline.label} at {format_score(baseline.score)}"
    gap = _gap(comparison, best)
    if best.p_value is None or not math.isfinite(best.p_value):
        return f"{opening}, {gap} better than {rival}; the difference was not tested."
    p_value = _p_clause(best.p_value)
    if best.p_value < SIGNIFICANCE:
        return f"{opening}, {gap} better than {rival} ({p_value})."
    return f"{opening}, but its lead of {gap} over {rival} could be chance ({p_value})."


def _baseline_wins(comparison: Comparison, baseline: MethodRow) -> str:
    score = _score_with_interval(comparison, baseline)
    opening = f"The baseline, {baseline.label}, has the best test score: {score}"
    others = [row for row in comparison.rows if row.label != baseline.label and math.isfinite(row.score)]
    if not others:
        return f"{opening}; no other method reached a finite score."
    nearest = min(others, key=lambda row: abs(row.score - baseline.score))
    rival = f"{nearest.label} at {format_score(nearest.score)}"
    trailing = f"{opening}; the next best, {rival}, is {_gap(comparison, nearest)} worse"
    if nearest.p_value is None or not math.isfinite(nearest.p_value):
        return f"{trailing}, which was not tested."
    p_value = _p_clause(nearest.p_value)
    if nearest.p_value < SIGNIFICANCE:
        return f"{trailing} ({p_value})."
    return f"{trailing}, which could be chance ({p_value})."


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


def _p_clause(p_value: float) -> str:
    written = format_p_value(p_value)
    return f"p < {written[1:]}" if written.startswith("<") else f"p = {written}"
