"""RAML: what its sampler draws, script by script, and the expected gradient over all of it, in float64.

The uniform numbers of the sampler matter only by the outcomes they choose: what happens to a token, how many insertions
precede it, which symbol. So all scripts can be listed with their probabilities.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest
import torch
from torch import Tensor

from method_worlds import SCORE, make_settings
from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.methods import edited_targets, raml
from seqcritic.methods.edited_targets import _edit, _log_excess, edit_weight
from seqcritic.testing.worlds import NUM_TOKENS, gradients, largest_difference, make_actor, make_batch
from test_raml import enumerated

REFERENCE = torch.tensor([1, 2])
NUM_SYMBOLS = NUM_TOKENS - 1
LONGEST = 2 * len(REFERENCE)


def script_outcomes(weight: float) -> tuple[list[list[tuple[float, float]]], int]:
    """Return (number, probability) of every outcome of each draw: kinds, runs, symbols; and how many are kinds."""
    other = weight * (NUM_SYMBOLS - 1)
    parts = [weight, other, 1 / (1 - other)]  # deleted, replaced, kept
    edges = [sum(parts[:place]) / sum(parts) for place in range(4)]
    kinds = [((low + high) / 2, high - low) for low, high in itertools.pairwise(edges)]

    def runs(ratio: float) -> list[tuple[float, float]]:
        # More insertions than the longest sequence has tokens are rejected, however many: one outcome for all.
        edges = [1 - ratio**size for size in range(LONGEST + 2)] + [1.0]
        return [((low + high) / 2, high - low) for low, high in itertools.pairwise(edges)]

    symbols = [((place + 0.5) / NUM_SYMBOLS, 1 / NUM_SYMBOLS) for place in range(NUM_SYMBOLS)]
    positions = len(REFERENCE)
    draws = [kinds] * positions + [runs(other)] * positions + [runs(weight * NUM_SYMBOLS)] + [symbols] * LONGEST
    return draws, positions


def drawn_distribution(weight: float) -> dict[tuple[int, ...], float]:
    """Return the probability of every sequence that the sampler can accept, by going through all scripts."""
    draws, positions = script_outcomes(weight)
    every = list(itertools.product(*draws))
    numbers = torch.tensor([[number for number, _ in draw] for draw in every], dtype=torch.float64)
    chances = torch.tensor([[chance for _, chance in draw] for draw in every], dtype=torch.float64).prod(1)
    kinds = torch.nn.functional.pad(numbers[:, :positions], (0, 1))
    runs, symbols = numbers[:, positions : 2 * positions + 1], numbers[:, 2 * positions + 1 :]
    references, lengths = REFERENCE.expand(len(every), -1), torch.full((len(every),), positions)
    edited, sizes = _edit(references, lengths, kinds, runs, symbols, NUM_SYMBOLS, weight)
    fits = sizes <= LONGEST
    edited, sizes, chances = edited[fits], sizes[fits], chances[fits]
    excess = _log_excess(edited, sizes, references[fits], lengths[fits], NUM_SYMBOLS, weight)
    assert float(excess.min()) > -1e-12, "a sequence cannot be accepted more often than always"
    masses: dict[tuple[int, ...], float] = defaultdict(float)
    for row, size, mass in zip(edited.tolist(), sizes.tolist(), (chances * torch.exp(-excess)).tolist(), strict=True):
        masses[tuple(row[:size])] += mass
    total = sum(masses.values())
    return {tokens: mass / total for tokens, mass in masses.items()}


@pytest.fixture(autouse=True)
def short_targets(monkeypatch):
    monkeypatch.setattr(edited_targets, "EXTRA_TOKENS", 0)
    monkeypatch.setattr("test_raml.EXTRA_TOKENS", 0)


@pytest.mark.parametrize("temperature", [0.5, 0.8, 1.0])
def test_the_sampler_draws_by_the_edit_distance_exactly(temperature):
    weight = edit_weight(NUM_SYMBOLS, temperature)
    found, expected = drawn_distribution(weight), enumerated(REFERENCE, NUM_SYMBOLS, weight)
    assert found.keys() == expected.keys()
    assert max(abs(found[tokens] - expected[tokens]) for tokens in expected) < 1e-12


def log_probability(actor: torch.nn.Module, tokens: tuple[int, ...]) -> Tensor:
    """Return log p(Ỹ), its end token included."""
    batch, closed = make_batch(), (*tokens, END)
    logits, _ = actor.score(actor.encode(batch.sources, batch.source_mask), torch.tensor([closed]))
    return torch.log_softmax(logits[0], 1)[range(len(closed)), closed].sum()


def always(tokens: tuple[int, ...], temperature: float, *given: object) -> tuple[Tensor, Tensor]:
    """Stand in for `draw_edited`: return these tokens, having seen that it was asked for the right ones."""
    references, lengths, num_symbols, asked, _ = given
    assert (references.tolist(), lengths.tolist()) == ([[*REFERENCE.tolist(), END]], [len(REFERENCE)])
    assert (num_symbols, asked) == (NUM_SYMBOLS, temperature)
    return torch.tensor([tokens], dtype=torch.int64).view(1, len(tokens)), torch.tensor([len(tokens)])


@pytest.mark.parametrize("likelihood_weight", [0.0, 0.25])
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_the_expected_gradient_is_that_of_the_cross_entropy(temperature, likelihood_weight, monkeypatch):
    """loss = −Σ_Ỹ q(Ỹ | Y) log p(Ỹ): the method on every target, weighted as the sampler draws it."""
    settings = make_settings("raml", raml={"temperature": temperature}, likelihood_weight=likelihood_weight)
    networks = Networks(make_actor())
    method = raml.Raml(settings.method, SCORE, True)
    weight = edit_weight(NUM_SYMBOLS, temperature)
    found = [torch.zeros_like(parameter) for parameter in networks.actor.parameters()]

    for tokens, probability in drawn_distribution(weight).items():
        monkeypatch.setattr(raml, "draw_edited", lambda *given, tokens=tokens: always(tokens, temperature, *given))
        outcome = method(networks, make_batch(), torch.Generator(), 0.0)
        for sum_so_far, gradient in zip(found, gradients(outcome.loss, networks.actor), strict=True):
            sum_so_far += probability * gradient
    loss = -likelihood_weight * log_probability(networks.actor, tuple(REFERENCE.tolist()))
    for tokens, probability in enumerated(REFERENCE, NUM_SYMBOLS, weight).items():
        loss = loss - probability * log_probability(networks.actor, tokens)
    assert largest_difference(found, gradients(loss, networks.actor)) < 1e-10
