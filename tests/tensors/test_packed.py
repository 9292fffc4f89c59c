"""Packed rows know their positions: padded again, split by sequences, put into another order."""

from __future__ import annotations

import pytest
import torch

from seqcritic.tensors.packed import Packed
from seqcritic.tensors.packing import pack

MASK = torch.tensor([[True, True, False, False], [True, False, False, False], [True, True, True, True]])
PADDED = torch.randn(3, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def packed_by_length() -> Packed:
    positions = pack(MASK).positions
    return Packed(PADDED.flatten(0, 1)[positions], positions, (3, 4))


@pytest.mark.parametrize("packed", [Packed.of(PADDED, MASK), packed_by_length()], ids=["by row", "by length"])
def test_unmasked_tokens_come_back_to_their_positions(packed):
    assert len(packed.rows) == 7
    assert torch.equal(packed.padded(), torch.where(MASK[:, :, None], PADDED, 0.0))
    assert torch.equal(packed.take(PADDED), packed.rows)
    assert torch.equal(packed.spread(packed.rows[:, 1]), torch.where(MASK, PADDED[:, :, 1], 0.0))


def test_a_part_has_the_sequences_asked_for_and_its_own_length():
    packed = packed_by_length()
    assert torch.equal(packed.part(0, 2, 2).padded(), torch.where(MASK[:2, :2, None], PADDED[:2, :2], 0.0))
    assert torch.equal(packed.part(2, 3, 4).padded(), PADDED[2:])
    nothing = packed.part(1, 1, 3)
    assert nothing.rows.shape == (0, 2)
    assert nothing.padded().shape == (0, 3, 2)


def test_gradients_come_back_to_the_rows_of_a_part():
    padded = PADDED.clone().requires_grad_()
    Packed.of(padded, MASK).part(2, 3, 4).rows.sum().backward()
    expected = torch.zeros_like(PADDED)
    expected[2] = 1.0
    assert torch.equal(padded.grad, expected)


def test_rows_of_another_order_are_put_into_this_one():
    by_length, by_row = packed_by_length(), Packed.of(PADDED, MASK)
    assert not torch.equal(by_length.positions, by_row.positions)
    assert torch.equal(by_length.align(by_row), by_length.rows)
    assert by_length.align(by_length) is by_length.rows
    with pytest.raises(AssertionError, match="of the same tokens"):
        by_length.align(Packed.of(PADDED, torch.ones_like(MASK)))
