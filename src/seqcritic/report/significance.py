"""What a p-value must stand: few seeds, and several tests in one table."""

import math
import statistics
from collections.abc import Sequence

STEPS = 2000  # of Simpson's rule; even, as it wants them


def correct_by_holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of a family of m tests by Holm's method, in the order given.

    The k-th smallest is multiplied by m − k + 1, at least as large as the one before it and at most 1. Whoever then
    calls p < 0.05 a difference is wrong anywhere in the family with probability 0.05 at most.
    """
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def p_over_seeds(ours: Sequence[float], theirs: Sequence[float], paired: bool) -> float | None:
    """Return the two-sided p of a t-test on the scores of two methods by seed; None where a spread is not known.

    Drawing two or three seeds with replacement cannot tell how seeds vary: where all differ in one direction, every
    resample does. Seeds that both methods share are a pair (Student), others are not (Welch).
    """
    if paired:
        differences = [one - other for one, other in zip(ours, theirs, strict=True)]
        if len(differences) < 2:
            return None
        mean, squared_error = statistics.fmean(differences), statistics.variance(differences) / len(differences)
        freedom = len(differences) - 1.0
    else:
        if min(len(ours), len(theirs)) < 2:
            return None
        mean = statistics.fmean(ours) - statistics.fmean(theirs)
        parts = [statistics.variance(scores) / len(scores) for scores in (ours, theirs)]
        squared_error = sum(parts)
        squares = sum(part**2 / (len(scores) - 1) for part, scores in zip(parts, (ours, theirs), strict=True))
        # Welch and Satterthwaite; without any spread the number does not matter, p is 0 or 1 below.
        freedom = squared_error**2 / squares if squares else 1.0
    if not math.isfinite(mean):
        return None
    if squared_error == 0:
        return 1.0 if mean == 0 else 0.0
    return _beyond(abs(mean) / math.sqrt(squared_error), freedom)


def _beyond(t: float, freedom: float) -> float:
    """Return P(|T| > t) of Student's distribution with ν degrees of freedom.

    With T = √ν tan θ the density is proportional to cos^(ν−1) θ, which Simpson's rule integrates.
    """
    start = math.atan(t / math.sqrt(freedom))
    return _integrate(start, freedom - 1) / _integrate(0.0, freedom - 1)


def _integrate(start: float, power: float) -> float:
    """Return the integral of cos^power from start to π/2."""
    # By the angle from π/2, whose sine keeps its digits where the cosine would lose them.
    width = (math.pi / 2 - start) / STEPS
    values = [math.pow(math.sin(index * width), power) for index in range(STEPS + 1)]
    return width / 3 * (values[0] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]) + values[-1])
