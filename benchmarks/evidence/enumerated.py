"""What `seqcritic diagnose` measures beside what is exact, on a world small enough to go through all of it.

    python benchmarks/evidence/enumerated.py    # about a minute; then results.py for the table and the picture

Fifteen sequences can be said to the one source of `seqcritic.testing`, so the true gradient, every
estimator's mean and its variance are sums. Critics are the exact values plus fixed noise of several sizes. For each
size samples are drawn as the command draws them, with a seed of its own, and both are written to
docs/results/gradients/enumeration.json: lengths in units of the true gradient's, measured figures with standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import torch

from seqcritic.analysis.estimators import ESTIMATORS
from seqcritic.analysis.measure import measure
from seqcritic.contracts.actor import LengthLimits
from seqcritic.report.diagnosis import EstimatorRow, Figure
from seqcritic.testing.critics import wrong_values
from seqcritic.testing.exact_moments import ExactMoments, make_baseline, make_subject
from seqcritic.testing.worlds import NUM_STEPS, make_actor, make_batch, make_world

DOCS = Path(__file__).parents[2] / "docs"
NOISES = (0.0, 0.05, 0.1, 0.2, 0.5)
EXAMPLES, DRAWS = 24, 1280
LONGER = NUM_STEPS - 2  # tokens by which a sample may outgrow the reference of two before the world ends
DIGITS = 9

Content = dict[str, object]


def find_exact(noise: float) -> dict[str, Content]:
    """Return every estimator's exact figures with a critic that is wrong by so much."""
    actor = make_actor()
    world = make_world(actor)
    exact = ExactMoments(world, wrong_values(world, noise), make_baseline(), EXAMPLES)
    return {
        name: {
            "variance": _round(exact.variances[name]),
            "bias": _round(math.sqrt(exact.bias_squares[name])),
            "bias_square": _round(exact.bias_squares[name]),
            "cosine": _round(exact.cosine(name)),
        }
        for name in ESTIMATORS
    }


def measure_noise(noise: float, seed: int, draws: int) -> Content:
    """Return exact and measured figures with a critic that is wrong by so much."""
    actor = make_actor()
    world = make_world(actor)
    subject = make_subject(world, wrong_values(world, noise))
    generator = torch.Generator().manual_seed(seed)
    actor.limits = LengthLimits(beyond_reference=LONGER)
    measured = measure(subject, make_baseline(), [make_batch().repeat(EXAMPLES)], generator, draws, 0.0)
    exact = find_exact(noise)
    return {
        "noise": noise,
        "seed": seed,
        "examples": EXAMPLES,
        "draws": measured.draws,
        "truth": measured.truth,
        "gradient_error": _round(measured.gradient_error),
        "estimators": [
            {"name": row.name, "exact": exact[row.name], "measured": _figures(row)} for row in measured.estimators
        ],
    }


def _figures(row: EstimatorRow) -> Content:
    return {
        "variance": _pair(row.variance),
        "bias": _round(row.bias),
        "bias_square": _pair(row.bias_square),
        "cosine": _pair(row.cosine),
    }


def _pair(figure: Figure) -> list[float]:
    return [_round(figure.value), _round(figure.error)]


def _round(value: float) -> float:
    """Keep what any machine finds; zero has no sign."""
    return round(value, DIGITS) + 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure with every size of noise, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS, help="for each size of noise, in whole sixteens")
    parser.add_argument("--out", type=Path, default=DOCS / "results/gradients/enumeration.json")
    options = parser.parse_args(arguments)
    rows = [measure_noise(noise, seed, options.draws) for seed, noise in enumerate(NOISES, start=1)]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
