"""A realistic comparison with made-up numbers: four methods, twenty sentences, an early jump."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from seqcritic.report.comparison import BeamScore, Comparison, Curve, Example, MethodRow, Point

LABELS = ("likelihood", "actor-critic", "actor-critic+likelihood", "reinforce-critic")
SENTENCES = (
    "the cat sat on the mat",
    "a quiet morning",
    "she opened the window",
    "rain fell on the roof",
    "two birds in a tree",
    "he could not prepare_memory",
    "letters from the north",
    "they walked to the river",
    "bread, salt and water",
    "no one answered the door",
    "a small stone house",
    "the lamp went out at ten",
    "it is later than you think",
    "what did the doctor say",
    "snow on the high road",
    "an old map of the coast",
    "the train was late again",
    "nothing is ever lost",
    "write it down for me",
    "the end of the long summer",
)
Maker = Callable[[int], Comparison]


def corrupt(sentence: str, rate: float, randomness: random.Random) -> str:
    """Change, drop or double some characters."""
    characters = []
    for character in sentence:
        draw = randomness.random()
        if draw < rate / 2:
            characters.append(randomness.choice("abcdefghijklmnopqrstuvwxyz "))
        elif draw < 0.75 * rate:
            continue
        else:
            characters.append(character)
            if draw > 1 - rate / 4:
                characters.append(character)
    return "".join(characters)


def make_curve(label: str, seed: int) -> Curve:
    """Make a curve that falls from its start; the critic's first steps make the score jump."""
    randomness = random.Random(f"{label}{seed}")
    start, floor, first, cost = {
        "likelihood": (92.0, 43.1, 0, 1.0),
        "actor-critic": (47.0, 40.2, 12_000, 2.6),
        "actor-critic+likelihood": (47.0, 38.4, 12_000, 2.9),
        "reinforce-critic": (47.0, 42.0, 12_000, 2.2),
    }[label]
    points = []
    for index in range(25):
        updates = 1000 * index
        compute = first + cost * updates
        score = floor + (start - floor) * math.exp(-index / 5) + randomness.gauss(0, 0.35)
        if label == "actor-critic" and index in (1, 2):
            score += 260 / index
        points.append(Point(compute, updates, score))
    return Curve(label, seed, tuple(points))


def build_comparison(num_seeds: int) -> Comparison:
    """Build the comparison with as many seeds as asked for."""
    results = {
        "likelihood": (43.18, None, 24_000, 1.0, 612.0),
        "actor-critic": (40.31, 0.004, 24_000, 2.61, 1604.0),
        "actor-critic+likelihood": (38.52, 0.0004, 24_000, 2.93, 1791.0),
        "reinforce-critic": (42.87, 0.214, 24_000, 2.24, 1377.0),
    }
    randomness = random.Random(7)
    rows = tuple(
        MethodRow(
            label=label,
            score=score,
            low=score - 0.81,
            high=score + 0.84,
            p_value=p_value,
            seed_scores=tuple(score + 0.3 * (seed - (num_seeds - 1) / 2) for seed in range(num_seeds)),
            updates=updates,
            cost_per_update=cost,
            seconds=seconds,
        )
        for label, (score, p_value, updates, cost, seconds) in results.items()
    )
    rates = {
        "likelihood": 0.16,
        "actor-critic": 0.11,
        "actor-critic+likelihood": 0.08,
        "reinforce-critic": 0.15,
    }
    examples = tuple(
        Example(
            source=corrupt(sentence, 0.3, randomness),
            reference=sentence,
            predictions={label: corrupt(sentence, rates[label], randomness) for label in LABELS},
        )
        for sentence in SENTENCES
    )
    return Comparison(
        title="Spelling correction, 30% of characters corrupted",
        score_name="CER",
        lower_is_better=True,
        signature="metric:CER|unit:character|case:mixed|average:corpus|decoding:greedy|sentences:1000",
        baseline="likelihood",
        rows=rows,
        curves=tuple(make_curve(label, seed) for label in LABELS for seed in range(num_seeds)),
        examples=examples,
        configuration="task: spelling\nmodel:\n  hidden: 100\n  layers: 1\nmethod:\n  name: actor-critic\n",
        environment={"python": "3.11.2", "torch": "2.10.0", "processor": "one core of a laptop"},
        notes=("Intervals and p-values are from 1,000 bootstrap samples of the test sentences.",),
        valid_signature="metric:CER|split:valid|sentences:300",
    )


def add_beam(comparison: Comparison) -> Comparison:
    """Add beam search of width 10, which helps the worst most."""
    scores = {"likelihood": 41.18, "actor-critic": 40.11, "actor-critic+likelihood": 38.02, "reinforce-critic": 41.6}
    rows = tuple(
        replace(
            row,
            beam=BeamScore(
                width=10,
                rhos=tuple(0.2 * seed for seed in range(len(row.seed_scores))),
                score=scores[row.label],
                low=scores[row.label] - 0.5,
                high=scores[row.label] + 0.5,
                p_value=None if row.p_value is None else 0.031,
                seed_scores=tuple(score - 0.2 for score in row.seed_scores),
            ),
        )
        for row in comparison.rows
    )
    return replace(comparison, rows=rows, beam_signature="metric:CER|search:beam:10|rho:tuned-on-valid")


@pytest.fixture
def make_beam_comparison() -> Maker:
    """Give tests the builder of a comparison with beam search."""
    return lambda num_seeds: add_beam(build_comparison(num_seeds))


def add_critic(comparison: Comparison) -> Comparison:
    """Add critics that explain more and more, and 62 percent when joint training begins."""
    rows = tuple(replace(row, critic_explains=0.62 if "critic" in row.label else None) for row in comparison.rows)
    points = tuple(Point(1000.0 * index, 500 * index, 0.62 - 0.9 * 0.7**index) for index in range(12))
    labels = [row.label for row in rows if row.critic_explains is not None]
    return replace(comparison, rows=rows, critic_curves=tuple(Curve(label, 0, points) for label in labels))


@pytest.fixture
def fitted_comparison() -> Comparison:
    """Give tests a comparison in which two methods tell their score on training examples, one of them to its middle."""
    comparison = build_comparison(1)
    chosen = ((0, 25), (1, 12))
    curves = tuple(
        replace(curve, points=tuple(replace(point, score=point.score / 2) for point in curve.points[:length]))
        for curve, length in ((comparison.curves[index], length) for index, length in chosen)
    )
    return replace(comparison, train_curves=curves)


@pytest.fixture
def critic_comparison() -> Comparison:
    """Give tests a comparison that tells how much its critics explain."""
    return add_critic(build_comparison(1))


@pytest.fixture
def make_comparison() -> Maker:
    """Give tests the builder, so that they choose the number of seeds."""
    return build_comparison


@pytest.fixture
def comparison() -> Comparison:
    """Give tests the comparison with three seeds."""
    return build_comparison(3)
