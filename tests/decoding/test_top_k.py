"""The expansions of a beam, found by blocks of tokens, against a plain sort of everything."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.decoding.top_k import BLOCK, _search_all, _search_blocks, expand_top_k
from seqcritic.errors import NonFiniteError


def sort_everything(logits: Tensor, log_probs: Tensor, width: int) -> list[list[tuple[float, int, int]]]:
    """Return (log-probability, parent, token) of the best, equals by hypothesis, by logit and by token."""
    steps = torch.log_softmax(logits, dim=1).double().view(*log_probs.shape, -1)
    found = []
    for row in range(len(log_probs)):
        candidates = [
            (-float(log_probs[row, parent] + steps[row, parent, token]), parent, -value, token)
            for parent in range(log_probs.shape[1])
            for token, value in enumerate(logits.view(*steps.shape)[row, parent].tolist())
        ]
        best = sorted(candidates)[:width]
        found.append([(-negative, parent, token) for negative, parent, _, token in best])
    return found


def make(seed: int, num_tokens: int, live: int, levels: int | None) -> tuple[Tensor, Tensor]:
    """Return logits and log-probabilities; a number of levels makes many of them equal."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(3 * live, num_tokens, generator=generator)
    log_probs = -torch.rand(3, live, generator=generator, dtype=torch.float64)
    if levels is not None:
        logits, log_probs = (logits * levels).round() / levels, (log_probs * levels).round() / levels
    return logits, log_probs


@pytest.mark.parametrize("levels", [None, 1, 40])
@pytest.mark.parametrize("num_tokens", [2 * BLOCK, 5 * BLOCK + 1, 7 * BLOCK - 1])
def test_expansions_are_those_of_a_sort_of_everything(num_tokens: int, levels: int | None):
    for seed, live, width in ((0, 1, 1), (1, 4, 4), (2, 7, 12), (3, 3, 40)):
        logits, log_probs = make(seed, num_tokens, live, levels)
        log_probs[1, -1] = -torch.inf if live > 1 else 0.0
        best, parents, tokens = expand_top_k(logits, log_probs, width)
        for row, expected in enumerate(sort_everything(logits, log_probs, width)):
            found = list(zip(best[row].tolist(), parents[row].tolist(), tokens[row].tolist(), strict=True))
            assert found == expected


def test_blocks_are_enough_where_nothing_is_equal_and_say_so_where_it_is():
    logits, log_probs = make(5, 9 * BLOCK + 3, 4, None)
    logits[0, :20] = 30.0  # the likeliest of the first example, all equal
    log_probs[0, 1:] -= 20.0
    steps = torch.log_softmax(logits, dim=1)
    *found, tied = _search_blocks(steps, log_probs, 6)
    assert tied.tolist() == [True, False, False]
    for ours, theirs in zip(found, _search_all(logits, steps, log_probs, 6), strict=True):
        assert torch.equal(ours[1:], theirs[1:])


@pytest.mark.parametrize("position", [0, 3 * BLOCK, 5 * BLOCK + 1])
def test_what_is_not_a_number_is_found_wherever_it_is(position: int):
    logits, log_probs = make(0, 5 * BLOCK + 2, 3, None)
    logits[4, position] = torch.nan
    with pytest.raises(NonFiniteError):
        expand_top_k(logits, log_probs, 3)
