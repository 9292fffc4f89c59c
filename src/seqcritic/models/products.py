"""Matrix products in bfloat16 with sums in float32, where they are asked for; elsewhere PyTorch's own, to the digit.

`bfloat16_products` asks for them on a CPU: factors are rounded inside the product; what goes in and comes out is
float32, as are weights, gradients, states, gates, softmax and losses. A layer's weights are made ready once for as long
as it is asked for, one update or one search; a gradient is rounded as its layer was, though it is computed later.

Predictions multiply in bfloat16 only with large matrices, as that of a vocabulary of words. With small ones there is
little to win, and much to lose: where a trained model's two best tokens are close it would say another one now and
then, and what rounding does to its states adds up from token to token.

Other devices have autocast (training/device.py), which chooses a type for every operation.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from seqcritic.native.products import Factor, narrow_factor

SMALL = 1 << 20  # numbers of a matrix that predictions multiply with in float32

Prepared = dict[tuple[int, ...], tuple[int, Factor]]  # by shape and strides: the version of a weight, its factor
_prepared: MutableMapping[Tensor, Prepared] | None = None  # None: not asked for
_predicting = False


@contextmanager
def bfloat16_products(predicting: bool = False) -> Iterator[None]:
    """Make matrix products of float32 tensors on a CPU in bfloat16; for predictions, those with large matrices."""
    global _prepared, _predicting
    # By identity, and for no longer than the weights live: a search makes some of its own for every batch.
    before, _prepared = _prepared, WeakTensorKeyDictionary() if _prepared is None else _prepared
    was_predicting, _predicting = _predicting, predicting
    try:
        yield
    finally:
        _prepared, _predicting = before, was_predicting


@contextmanager
def float32_products() -> Iterator[None]:
    """Make them as wide as the tensors again, within a place that asks for narrow ones."""
    global _prepared
    before, _prepared = _prepared, None
    try:
        yield
    finally:
        _prepared = before


def are_asked_for() -> bool:
    """Whether products in bfloat16 are asked for."""
    return _prepared is not None


def are_narrow(inputs: Tensor, weight: Tensor) -> bool:
    """Whether products of these inputs with this weight are to be made in bfloat16."""
    if _prepared is None or inputs.dtype != torch.float32 or inputs.device.type != "cpu":
        return False
    return not _predicting or weight.numel() > SMALL


def factor_of(matrix: Tensor, narrow: bool) -> Factor:
    """Return a matrix [K, N] that others are multiplied with from the left."""
    return narrow_factor(matrix.detach()) if narrow else Factor(matrix)


def multiply_transposed(left: Tensor, right: Tensor, narrow: bool) -> Tensor:
    """Return Aᵀ B, [M, N], of A [K, M] and B [K, N]: a weight's gradient from those of its outputs and its inputs."""
    if not narrow:
        return left.t() @ right
    out = left.new_empty(left.shape[1], right.shape[1])
    factor_of(right, narrow).write(left.t(), out)
    return out


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return W x + b, [..., N], for x [..., K], W [N, K] and b [N]."""
    if not are_narrow(inputs, weight):
        return functional.linear(inputs, weight, bias)
    if not torch.is_grad_enabled():
        return _multiply(inputs, weight, bias)
    result: Tensor = NarrowLinear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return result


class NarrowLinear(torch.autograd.Function):
    """W x + b with all three products in bfloat16."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return [..., N]."""
        ctx.save_for_backward(inputs, weight)
        return _multiply(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of inputs, weight and bias."""
        inputs, weight = ctx.saved_tensors
        for_inputs, for_weight, for_bias = ctx.needs_input_grad
        rows = gradient.reshape(-1, len(weight))
        to_inputs = None
        if for_inputs:
            # Contiguous whatever the inputs are, for the view below.
            to_inputs = torch.empty_like(inputs, memory_format=torch.contiguous_format)
            # Narrow as its layer was: by now, in the backward pass, it may no longer be asked for.
            factor_of(weight, narrow=True).write(rows, to_inputs.view(-1, weight.shape[1]))
        return (
            to_inputs,
            multiply_transposed(rows, inputs.reshape(-1, weight.shape[1]), narrow=True) if for_weight else None,
            rows.sum(dim=0) if for_bias else None,
        )


def _multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = inputs.new_empty(*inputs.shape[:-1], len(weight))
    _prepare(weight).write(
        inputs.detach().reshape(-1, weight.shape[1]), out.view(-1, len(weight)), None if bias is None else bias.detach()
    )
    return out


def _prepare(weight: Tensor) -> Factor:
    """Return the transpose of a weight as a factor: the one made before, if it has not changed since."""
    assert _prepared is not None, "products in bfloat16 are asked for"
    owner = weight if weight._base is None else weight._base  # a view is made anew at every call, its owner is not
    known = _prepared.setdefault(owner, {})
    # An owner has several forms: its transpose, some of its columns, each a factor of its own.
    form = (*weight.shape, *weight.stride(), weight.storage_offset())
    version, factor = known.get(form, (-1, None))
    # Every change in place, as an optimiser makes it, raises the version.
    if factor is None or version != weight._version:
        factor = narrow_factor(weight.detach().t())
        known[form] = weight._version, factor
    return factor
