"""Rows of nested tensors: every kind of tree, and what must not be joined."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from seqcritic.tensors import rows
from seqcritic.tensors.rows import Shared


class Pair(NamedTuple):
    first: Tensor
    second: Tensor | None


def make_tree() -> tuple[object, ...]:
    numbers = torch.arange(6.0).view(3, 2)
    return (numbers, Pair(numbers + 10, None), {"list": [numbers + 20]}, Shared("weights"))


def test_rows_are_selected_repeated_and_joined_everywhere_in_a_tree():
    some = rows.select(make_tree(), torch.tensor([2, 0]))
    assert some[0].tolist() == [[4, 5], [0, 1]]
    assert some[1].first.tolist() == [[14, 15], [10, 11]]
    assert some[1].second is None
    assert some[2]["list"][0].tolist() == [[24, 25], [20, 21]]
    assert some[3] == Shared("weights")
    assert rows.select(make_tree(), torch.tensor([True, False, False]))[0].tolist() == [[0, 1]]
    assert rows.repeat(make_tree(), 2)[1].first[:, 0].tolist() == [10, 10, 12, 12, 14, 14]
    assert rows.cat([make_tree(), some])[2]["list"][0][:, 1].tolist() == [21, 23, 25, 25, 21]
    assert isinstance(some[1], Pair)


def test_a_detached_tree_has_the_same_numbers_and_no_gradient():
    numbers = torch.ones(2, requires_grad=True)
    detached = rows.detach({"numbers": numbers * 2})
    assert detached["numbers"].tolist() == [2, 2]
    assert not detached["numbers"].requires_grad


def test_trees_of_different_structure_are_not_joined():
    masked, plain = Pair(torch.ones(2), torch.ones(2)), Pair(torch.ones(2), None)
    for trees in ([masked, plain], [plain, masked]):
        with pytest.raises(AssertionError, match="one structure"):
            rows.cat(trees)
