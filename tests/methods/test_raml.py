"""RAML: the sampler against the enumerated distribution, and likelihood at temperature 0."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import pytest
import torch
from torch import Tensor

from method_worlds import SCORE, make_batch, make_networks, make_settings
from seqcritic.methods import edited_targets
from seqcritic.methods.build import build_method
from seqcritic.methods.edited_targets import draw_edited, edit_weight
from seqcritic.scores.edit_distance import prefix_distances
from seqcritic.testing.worlds import gradients, largest_difference

NUM_DRAWS = 40_000
EXTRA_TOKENS = 4  # instead of 10, so that all can be listed


def enumerated(reference: Tensor, num_tokens: int, weight: float) -> dict[tuple[int, ...], float]:
    """Return q of every sequence of at most 2|Y| + 4 tokens."""
    masses = {}
    for length in range(2 * len(reference) + EXTRA_TOKENS + 1):
        tokens = torch.tensor(list(itertools.product(range(1, num_tokens + 1), repeat=length)))
        tokens = tokens.reshape(num_tokens**length, length)
        lengths = torch.full((len(tokens),), len(reference))
        distances = prefix_distances(tokens, reference.expand(len(tokens), -1), lengths)[:, -1]
        masses |= zip(map(tuple, tokens.tolist()), (weight ** distances.double()).tolist(), strict=True)
    total = sum(masses.values())
    return {sequence: mass / total for sequence, mass in masses.items()}


def chi_square_probability(found: Counter[object], expected: dict[object, float]) -> float:
    """Return the chance of a χ² as large as the found counts', rare values taken together."""
    usual = [value for value, mass in expected.items() if mass * NUM_DRAWS >= 10]
    masses = [expected[value] for value in usual]
    counts = [found[value] for value in usual]
    if 1 - sum(masses) > 1e-9:
        masses.append(1 - sum(masses))
        counts.append(NUM_DRAWS - sum(counts))
    statistic = sum(
        (count - NUM_DRAWS * mass) ** 2 / (NUM_DRAWS * mass) for count, mass in zip(counts, masses, strict=True)
    )
    half = torch.tensor([(len(counts) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


@pytest.mark.parametrize(
    ("reference", "num_tokens", "temperature"),
    [([1, 2], 2, 1.0), ([1, 1], 2, 0.8), ([2, 1, 2], 2, 1.0), ([1, 3], 3, 1.0), ([1, 1], 1, 1.0)],
)
def test_the_sampler_matches_the_enumerated_distribution(reference, num_tokens, temperature, monkeypatch):
    monkeypatch.setattr(edited_targets, "EXTRA_TOKENS", EXTRA_TOKENS)
    target, weight = torch.tensor(reference), edit_weight(num_tokens, temperature)
    expected = enumerated(target, num_tokens, weight)
    lengths = torch.full((NUM_DRAWS,), len(reference))
    generator = torch.Generator().manual_seed(0)
    tokens, lengths = draw_edited(target.expand(NUM_DRAWS, -1), lengths, num_tokens, temperature, generator)
    drawn = [tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]
    assert set(drawn) <= set(expected)
    assert chi_square_probability(Counter(drawn), expected) > 1e-3

    def distance(sequence: tuple[int, ...]) -> int:
        return round(math.log(expected[sequence] / expected[tuple(reference)], weight))

    classes: dict[object, float] = defaultdict(float)
    for sequence, mass in expected.items():
        classes[distance(sequence)] += mass
    assert chi_square_probability(Counter(map(distance, drawn)), classes) > 1e-3


def test_a_row_depends_on_its_own_numbers_only():
    references = torch.randint(1, 5, (6, 4), generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([4, 3, 2, 1, 4, 0])
    longer = torch.cat([references, torch.randint(1, 5, (6, 3), generator=torch.Generator().manual_seed(2))], 1)
    changed = torch.where(torch.arange(6) == 5, 7, lengths)
    first, first_lengths = draw_edited(references, lengths, 4, 1.0, torch.Generator().manual_seed(3))
    second, second_lengths = draw_edited(longer, changed, 4, 1.0, torch.Generator().manual_seed(3))
    assert torch.equal(first_lengths[:5], second_lengths[:5])
    for row, length in enumerate(first_lengths[:5].tolist()):
        assert torch.equal(first[row, :length], second[row, :length])
    assert len({tuple(row) for row in first.tolist()}) > 3


@pytest.mark.parametrize("temperature", [0.0, 1e-3])
def test_at_temperature_0_it_is_likelihood_exactly(temperature):
    settings = make_settings("raml", raml={"temperature": temperature})
    networks, batch = make_networks(settings), make_batch()
    ours = build_method(settings, "train", SCORE)(networks, batch, torch.Generator().manual_seed(0), 0.5)
    theirs = build_method(settings, "actor", SCORE)(networks, batch, torch.Generator(), 0.5)
    assert torch.equal(ours.loss, theirs.loss)
    assert largest_difference(gradients(ours.loss, networks.actor), gradients(theirs.loss, networks.actor)) == 0
    assert ours.measurements["target_distance"] == 0


def test_targets_are_further_away_at_a_higher_temperature():
    distances = []
    for temperature in (0.3, 0.6, 0.9):
        settings = make_settings("raml", raml={"temperature": temperature}, samples=50)
        method = build_method(settings, "train", SCORE)
        outcome = method(make_networks(settings), make_batch(), torch.Generator().manual_seed(0), 0.0)
        distances.append(float(outcome.measurements["target_distance"]))
    assert 0 <= distances[0] < distances[1] - 0.1 < distances[2] - 0.2
