"""Tokens chosen by random numbers: they follow the distribution, to its edges."""

from __future__ import annotations

import pytest
import torch

from seqcritic.draws import BITS, choose, draw_numbers

NUM_DRAWS = 200_000
LARGEST = (1 << BITS) - 1


def chi_square(observed: torch.Tensor, expected: torch.Tensor) -> float:
    return float(((observed - expected).square() / expected).sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_draws_follow_the_distribution(dtype: torch.dtype, seed: int):
    weights = torch.randn(40, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    probabilities = torch.softmax(2 * weights, dim=0)
    numbers = draw_numbers(torch.Generator().manual_seed(seed), NUM_DRAWS // 100, 100)
    drawn = torch.stack([choose(probabilities.expand(100, -1), step) for step in numbers])
    counts = torch.bincount(drawn.flatten(), minlength=40).double()
    # Of 39 degrees of freedom: exceeded once in a thousand times.
    assert chi_square(counts, NUM_DRAWS * probabilities.double()) < 72.06


def test_the_chi_square_test_would_notice_a_shift_of_one_percent():
    probabilities = torch.softmax(torch.linspace(0, 2, 40), dim=0)
    shifted = probabilities.double() * torch.tensor([1.02, 0.98]).repeat(20)
    assert chi_square(NUM_DRAWS * shifted / shifted.sum(), NUM_DRAWS * probabilities.double()) > 72.06


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_number_chooses_a_token_of_probability_zero(dtype: torch.dtype):
    numbers = torch.tensor([0, 1, 1 << 31, LARGEST - 1, LARGEST])
    generator = torch.Generator().manual_seed(7)
    for num_tokens in (1, 2, 7, 30_000):
        for kept in (1, 2, num_tokens):
            # Zeros at the beginning, in the middle and at the end; large vocabularies round the sum of 1 up or down.
            logits = torch.randn(num_tokens, generator=generator, dtype=dtype)
            logits[torch.randperm(num_tokens, generator=generator)[: num_tokens - kept]] = -torch.inf
            probabilities = torch.softmax(logits, dim=0)
            chosen = choose(probabilities.expand(len(numbers), -1), numbers)
            assert bool(((chosen >= 0) & (chosen < num_tokens)).all())
            assert bool((probabilities[chosen] > 0).all())


def test_sums_beyond_one_do_not_overflow():
    probabilities = torch.full((1, 8), 0.125 * (1 + 1e-5))
    assert choose(probabilities, torch.tensor([LARGEST])).tolist() == [7]
    assert choose(probabilities, torch.tensor([0])).tolist() == [0]


def test_a_boundary_belongs_to_the_next_token():
    halves = torch.tensor([[0.5, 0.5]]).expand(3, -1)
    assert choose(halves, torch.tensor([(1 << 31) - 1, 1 << 31, (1 << 31) + 1])).tolist() == [0, 1, 1]


def test_the_first_steps_do_not_depend_on_the_number_of_steps():
    numbers = draw_numbers(torch.Generator().manual_seed(4), 50, 300)
    for num_steps in (1, 2, 17, 49):
        assert torch.equal(draw_numbers(torch.Generator().manual_seed(4), num_steps, 300), numbers[:num_steps])


def test_the_generator_moves_by_the_same_step_whatever_is_drawn():
    few, many = torch.Generator().manual_seed(4), torch.Generator().manual_seed(4)
    first = draw_numbers(few, 2, 3)
    draw_numbers(many, 90, 700)
    assert torch.equal(few.get_state(), many.get_state())
    assert not torch.equal(draw_numbers(few, 2, 3), first)
