"""How numbers are written in tables, plots and sentences; what is not finite is written as a dash."""

import math

from seqcritic.report.comparison import Comparison, MethodRow

ABSENT = "–"


def format_score(score: float) -> str:
    """Write a score, which is in percent already, with two decimals."""
    return f"{score:.2f}" if math.isfinite(score) else ABSENT


def format_interval(low: float, high: float) -> str:
    """Write the two ends of an interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ABSENT
    return f"{low:.2f}–{high:.2f}"


def format_p_value(p_value: float | None) -> str:
    """Write a p-value with three decimals, or say that it is smaller than they can show."""
    if p_value is None or not math.isfinite(p_value):
        return ABSENT
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def format_percent(fraction: float | None) -> str:
    """Write a fraction of a whole in percent."""
    if fraction is None or not math.isfinite(fraction):
        return ABSENT
    return f"{100 * fraction:.0f}%"


def format_gain(comparison: Comparison, row: MethodRow) -> str:
    """Write how a row stands against the baseline, in words that do not depend on the score's direction."""
    baseline = comparison.baseline_row
    if baseline is not None and row.label == baseline.label:
        return "baseline"
    gain = comparison.gain(row)
    if gain is None:
        return ABSENT
    # As it would be written: a gain that rounds to nothing is not called 0.0 % better.
    if f"{abs(gain):.1f}" == "0.0":
        return "equal" if gain == 0 else f"<0.1% {_direction(gain)}"
    return f"{abs(gain):.1f}% {_direction(gain)}"


def format_count(count: int) -> str:
    """Write a count with its thousands set apart."""
    return f"{count:,}"


def format_cost(cost: float) -> str:
    """Write a cost relative to one likelihood update."""
    return f"{cost:.2f}×" if math.isfinite(cost) else ABSENT


def format_minutes(seconds: float) -> str:
    """Write seconds as minutes."""
    if not math.isfinite(seconds):
        return ABSENT
    minutes = seconds / 60
    return "<0.1" if 0 < minutes < 0.1 else f"{minutes:,.1f}"


def format_compact(value: float) -> str:
    """Write a number on an axis: 2500 is 2.5k and 1000000 is 1M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.6g}{suffix}"
    return f"{value:.6g}"


def format_value(value: float) -> str:
    """Write a value of the critic with the paper's three decimals."""
    return f"{value:.3f}" if math.isfinite(value) else ABSENT


def format_probability(probability: float) -> str:
    """Write a probability with two decimals."""
    return f"{probability:.2f}" if math.isfinite(probability) else ABSENT


def format_reward(reward: float) -> str:
    """Write a reward with its sign, a whole one without decimals."""
    if not math.isfinite(reward):
        return ABSENT
    rounded = round(reward, 3) + 0.0  # adding zero turns a negative zero into a plain one
    return f"{rounded:+.3f}".rstrip("0").rstrip(".") if rounded else "0"


def format_sum(total: float) -> str:
    """Write a sum of rewards, a whole one without decimals."""
    return format_reward(total).removeprefix("+")


def _direction(gain: float) -> str:
    return "better" if gain > 0 else "worse"
