"""Sums over the vocabulary with a backward pass written by hand: one pass over the numbers where PyTorch makes several.

With a vocabulary of words, logits and values [N, V] are the largest tensors of an update by far. Each function here
makes of them what a loss needs of one token, keeps one tensor of their size, and makes one for the gradient:

    log p(y)                         d/d logit_a = [a = y] − p_a
    U = Σ_a p_a (Q_a − τ log p_a)    d/d logit_a = p_a (Q_a − τ log p_a − U)
    Q_y,  C = Σ_a (Q_a − Q̄)²         d/d Q_a     = [a = y],   2 (Q_a − Q̄)

(In the second the derivative of −τ log p itself drops out, for Σ_a p_a d log p_a = 0; in the last that of Q̄ does.)

Where only C columns c have a value of their own and all other tokens have that of the rest, ρ (tensors/values.py):

    U = ρ + Σ_c p_c (Q_c − ρ)        d/d logit_a = p_a (Q_a − U),  Q_a = ρ without a column
    C = Σ_c (Q_c − Q̄)² + (V − C) (ρ − Q̄)²,   Q̄ = ρ + Σ_c (Q_c − ρ) / V
                                     d/d Q_c     = 2 (Q_c − Q̄),   d/d ρ = 2 (V − C) (ρ − Q̄)

Differences to ρ are summed, not values: with V of 30,000 a sum of V − C equal values would lose them to rounding.

Shapes: N tokens, V vocabulary, C columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqcritic.models.products import are_narrow, factor_of, multiply_transposed

AT_ONCE = 1 << 20  # numbers of what is needed for a moment only: 4 MB, which stay in a processor's cache


def _normalisers(logits: Tensor, probabilities: Tensor) -> Tensor:
    """log Σ_a exp logit_a, [N, 1], as logit_a − log p_a of the likeliest token; logits and probabilities are [N, V]."""
    # Softmax has subtracted the largest logit already, so its own probability is the one that cannot have underflowed:
    # no second pass over [N, V] for a logsumexp.
    return logits.amax(dim=1, keepdim=True) - probabilities.amax(dim=1, keepdim=True).log()


def _sums_of_products(left: Tensor, right: Tensor) -> Tensor:
    """Σ_a left_a right_a, [N], of [N, V] both: some rows at a time, since all products together are another [N, V]."""
    return torch.cat([torch.linalg.vecdot(ours, theirs) for ours, theirs in _some_rows(left, right)])


def _some_rows(whole: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield so many rows of [N, V], and of others [N, …], that they are a moment's work."""
    some = max(1, AT_ONCE // whole.shape[1])
    yield from zip(*(torch.split(each, some) for each in (whole, *others)), strict=True)


def _log_probability_gradient(probabilities: Tensor, tokens: Tensor, by_chosen: Tensor) -> Tensor:
    """Return [N, V], the gradient of the logits where that of log p(y) is [N]."""
    # In place on the one tensor that is made: an index of a fresh one-hot tensor would be another [N, V].
    weights = by_chosen[:, None]
    return torch.mul(probabilities, -weights).scatter_add_(1, tokens[:, None], weights)


class TokenLogProbability(torch.autograd.Function):
    """log p(y)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, tokens: Tensor) -> Tensor:
        """Return [N] for logits [N, V] and tokens [N]."""
        probabilities = torch.softmax(logits, dim=1)
        # Probabilities rather than log-probabilities: they are what the gradient is made of.
        ctx.save_for_backward(probabilities, tokens)
        return (logits.gather(1, tokens[:, None]) - _normalisers(logits, probabilities))[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_chosen: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the logits."""
        probabilities, tokens = ctx.saved_tensors
        return _log_probability_gradient(probabilities, tokens, by_chosen), None


class KnownLogProbability(torch.autograd.Function):
    """log p(y) of an output layer W x + b, where it and p are known: only the gradient is computed."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, tokens: Tensor, probabilities: Tensor, known: Tensor
    ) -> Tensor:
        """Return what is known, [N], for inputs x [N, F], weight [V, F], bias [V], tokens [N] and p [N, V]."""
        # The logits are never made: their gradient follows from p and y, and goes straight into the layer's weights.
        ctx.save_for_backward(inputs, weight, tokens, probabilities)
        ctx.narrow = are_narrow(inputs, weight)
        # A copy, for autograd would take the same tensor to have no history.
        return known.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_chosen: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of inputs, weight and bias."""
        inputs, weight, tokens, probabilities = ctx.saved_tensors
        by_logits = _log_probability_gradient(probabilities, tokens, by_chosen)
        to_inputs = inputs.new_empty(inputs.shape)
        factor_of(weight, ctx.narrow).write(by_logits, to_inputs)
        to_weight = multiply_transposed(by_logits, inputs, ctx.narrow)
        return to_inputs, to_weight, by_logits.sum(dim=0), None, None, None


class SoftValues(torch.autograd.Function):
    """Σ_a p_a (Q_a − τ log p_a), the values being constants."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, values: Tensor, temperature: float, overwrites: bool) -> Tensor:
        """Return [N] for logits and values [N, V]; with a temperature it may overwrite the values."""
        probabilities = torch.softmax(logits, dim=1)
        # Without a temperature, as in the paper, no log-probability is needed and nothing of the size of V is added.
        worth = values
        if temperature:
            worth = values if overwrites else torch.empty_like(values)
            # Some rows at a time, into one tensor or none: three more [N, V] would be the peak of an update's memory.
            normalisers = _normalisers(logits, probabilities)
            for part, normaliser, value, place in _some_rows(logits, normalisers, values, worth):
                torch.add(value, (part - normaliser).mul_(-temperature), out=place)
        expected = _sums_of_products(probabilities, worth)
        ctx.save_for_backward(probabilities, worth, expected)
        return expected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_expected: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the gradient of the logits."""
        probabilities, worth, expected = ctx.saved_tensors
        # τ log p depends on the logits too, but Σ_a p_a d log p_a = 0: `worth` may be treated as a constant.
        return (worth - expected[:, None]).mul_(probabilities).mul_(by_expected[:, None]), None, None, None


class ColumnValues(torch.autograd.Function):
    """Σ_a p_a Q_a of columns and rest, the values being constants."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, values: Tensor, columns: Tensor) -> Tensor:
        """Return [N] for logits [N, V], values [N, C + 1], the rest last, and columns [C]."""
        probabilities = torch.softmax(logits, dim=1)
        # Differences to ρ: tokens without a column then add nothing, however many there are.
        rest = values[:, -1]
        weighted = probabilities.index_select(1, columns).mul_(values[:, :-1] - rest[:, None])
        above_rest = weighted.sum(dim=1)
        ctx.save_for_backward(probabilities, weighted, above_rest, columns)
        return rest + above_rest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_expected: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient of the logits: p_a (ρ − U) of every token, and p_c (Q_c − ρ) more of a column."""
        probabilities, weighted, above_rest, columns = ctx.saved_tensors
        gradient = torch.mul(probabilities, (-above_rest * by_expected)[:, None])
        # Columns are few: what they have beyond the rest is added to them alone.
        return gradient.index_add_(1, columns, weighted * by_expected[:, None]), None, None


class ChosenAndSpread(torch.autograd.Function):
    """Q_y and Σ_a (Q_a − Q̄)²."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, tokens: Tensor, num_others: int | None) -> tuple[Tensor, Tensor]:
        """Return Q_y and the spread, both [N], for values [N, V] and tokens [N].

        Where the last of values [N, C + 1] is that of `num_others` tokens, `tokens` are columns.
        """
        ctx.num_others = num_others
        if num_others is None:
            deviations = values - values.mean(dim=1, keepdim=True)
            # One pass; squaring into a tensor of its own would be another [N, V].
            spreads = torch.linalg.vector_norm(deviations, dim=1).square()
        else:
            # Q̄ is the mean over all V tokens: the sum of differences to ρ has nothing of the others in it.
            above_rest = values - values[:, -1:]
            deviations = above_rest - above_rest.sum(dim=1, keepdim=True) / (values.shape[1] - 1 + num_others)
            spreads = deviations[:, :-1].square().sum(dim=1) + num_others * deviations[:, -1].square()
        ctx.save_for_backward(deviations, tokens)
        # With λ_C = 0 nobody asks for the spreads: no gradient of zeros is made of them.
        ctx.set_materialize_grads(False)
        return values.gather(1, tokens[:, None])[:, 0], spreads

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_chosen: Tensor | None, by_spread: Tensor | None) -> tuple[Tensor, None, None]:
        """Return the gradient of the values."""
        deviations, tokens = ctx.saved_tensors
        gradient = torch.zeros_like(deviations) if by_spread is None else deviations * (2 * by_spread)[:, None]
        if ctx.num_others is not None:
            # The last column stands for so many tokens, each with that deviation.
            gradient[:, -1].mul_(ctx.num_others)
        if by_chosen is not None:
            gradient.scatter_add_(1, tokens[:, None], by_chosen[:, None])
        return gradient, None, None


def token_log_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return log p(y), [N]; see TokenLogProbability."""
    result: Tensor = TokenLogProbability.apply(logits, tokens)  # type: ignore[no-untyped-call]
    return result


def known_log_probabilities(
    inputs: Tensor, weight: Tensor, bias: Tensor, tokens: Tensor, probabilities: Tensor, known: Tensor
) -> Tensor:
    """Return what is known of log p(y), [N], with its gradient; see KnownLogProbability."""
    result: Tensor = KnownLogProbability.apply(inputs, weight, bias, tokens, probabilities, known)  # type: ignore[no-untyped-call]
    return result


def soft_values(logits: Tensor, values: Tensor, temperature: float, overwrites: bool = False) -> Tensor:
    """Return Σ_a p_a (Q_a − τ log p_a), [N]; see SoftValues."""
    result: Tensor = SoftValues.apply(logits, values, temperature, overwrites)  # type: ignore[no-untyped-call]
    return result


def column_values(logits: Tensor, values: Tensor, columns: Tensor) -> Tensor:
    """Return Σ_a p_a Q_a of columns and rest, [N]; see ColumnValues."""
    result: Tensor = ColumnValues.apply(logits, values, columns)  # type: ignore[no-untyped-call]
    return result


def chosen_and_spread(values: Tensor, tokens: Tensor, num_others: int | None = None) -> tuple[Tensor, Tensor]:
    """Return Q_y and Σ_a (Q_a − Q̄)², each [N]; see ChosenAndSpread."""
    result: tuple[Tensor, Tensor] = ChosenAndSpread.apply(values, tokens, num_others)  # type: ignore[no-untyped-call]
    return result
