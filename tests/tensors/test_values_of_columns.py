"""Values of columns and rest against their expansion to all tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns, Values, as_packed

NUM_TOKENS = 7
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False], [True, True, False]])
SOME, ALL = torch.tensor([0, 2, 3, 6]), torch.arange(NUM_TOKENS)
every_choice = pytest.mark.parametrize("ids", [SOME, ALL, torch.tensor([4])], ids=["some", "all", "one"])


def make_values(ids: Tensor, seed: int = 0) -> Values:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(*MASK.shape, len(ids) + 1, dtype=torch.float64, generator=generator)
    return Values(Packed.of(rows, MASK), Columns(ids, NUM_TOKENS))


def expand_by_hand(values: Values) -> Tensor:
    """[N, V], token by token."""
    ids = values.columns.ids.tolist()
    positions = [ids.index(token) if token in ids else len(ids) for token in range(NUM_TOKENS)]
    return torch.stack([values.packed.rows[:, place] for place in positions], dim=1)


@every_choice
def test_every_token_has_the_value_of_its_column_or_of_the_rest(ids: Tensor):
    values = make_values(ids)
    expanded = expand_by_hand(values)
    assert torch.equal(values.expanded().rows, expanded)
    assert values.num_tokens == NUM_TOKENS
    tokens = torch.tensor([[1, 2, 6], [0, 5, 5], [5, 5, 5], [3, 4, 0]])
    taken = values.packed.take(tokens)
    assert torch.equal(values.packed.take(values.of_tokens(tokens)), expanded.gather(1, taken[:, None])[:, 0])
    assert torch.equal(values.padded(), values.packed.spread(expanded))


@every_choice
def test_mean_and_range_are_those_of_all_tokens(ids: Tensor):
    values = make_values(ids)
    if ids is ALL:
        values.packed.rows[:, -1] = 100.0  # of no token
    expanded = expand_by_hand(values)
    assert values.mean().item() == pytest.approx(expanded.mean().item(), abs=1e-12)
    assert values.range() == (expanded.min(), expanded.max())


@every_choice
def test_the_best_token_has_the_highest_value_and_of_the_others_the_highest_preference(ids: Tensor):
    values = make_values(ids)
    values.packed.rows[:3, -1] = 100.0
    expanded = expand_by_hand(values)
    turned = torch.arange(len(expanded)).flip(0)
    preferences = torch.randn(len(expanded), NUM_TOKENS, generator=torch.Generator().manual_seed(1))
    packed = Packed(preferences[turned], values.packed.positions[turned], values.packed.shape)
    for row, token in enumerate(values.best(packed).tolist()):
        equals = [other for other in range(NUM_TOKENS) if expanded[row, other] == expanded[row].max()]
        assert token == max(equals, key=lambda other: preferences[row, other].item())


def test_values_of_all_tokens_are_what_they_are():
    rows = torch.tensor([[3.0, 1.0, 2.0], [0.0, -1.0, 4.0]])
    values = Values.of_rows(rows)
    assert torch.equal(values.expanded().rows, rows)
    assert values.best(as_packed(-rows)).tolist() == [0, 2]
    assert values.of_tokens(torch.tensor([[1], [2]])).tolist() == [[1.0], [4.0]]
    assert values.mean().item() == 1.5
    assert [end.item() for end in values.range()] == [-1.0, 4.0]
