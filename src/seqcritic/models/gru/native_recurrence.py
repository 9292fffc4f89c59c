"""The loops of recurrence.py with the elementwise work of a step in compiled kernels; the products are PyTorch's, or,
where products in bfloat16 are asked for, ours.

The equations and the order of the steps are those of recurrence.py. What differs is what is kept for the way back: the
gates take the place of the products they are made from, and the attention's activations, which would be the largest
array by far, are computed again.

Shapes: B examples, N their tokens in packed order, S positions of the memory, C their size, A attention size, H state,
D directions.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqcritic.models.products import are_narrow, factor_of, multiply_transposed
from seqcritic.native.kernels import Kernels
from seqcritic.tensors.packing import Packing


class NativeGatedScan(torch.autograd.Function):
    """GatedScan with kernels."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, packing: Packing, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return states [D, N, H] for inputs [D, N, 3H], weight [D, 3H, H] and bias [D, 3H]."""
        inputs, bias = inputs.contiguous(), bias.contiguous()
        num_directions, num_tokens, triple = inputs.shape
        size, counts, narrow = triple // 3, packing.counts, are_narrow(inputs, weight)
        states = inputs.new_empty(num_directions, num_tokens, size)
        # Holds W s of each step until the kernel puts the gates r, z and p_n in its place.
        gates = torch.empty_like(inputs)
        candidates = torch.empty_like(states)
        gates[:, : packing.num_first] = 0  # the product of the first state, which is zero
        zeros = inputs.new_zeros(packing.num_first, size)
        for direction in range(num_directions):
            transposed = factor_of(weight[direction].t(), narrow)
            before = states[direction].split_with_sizes(counts)
            products = gates[direction].split_with_sizes(counts)
            inputs_at, gates_at, states_at, candidates_at, bias_at = (
                _Rows(tensor[direction]) for tensor in (inputs, gates, states, candidates, bias)
            )
            hidden, start = zeros.data_ptr(), 0
            for step, count in enumerate(counts):
                if step:
                    # The first `count` rows of the step before are those that go on: rows are sorted by length.
                    transposed.write(before[step - 1][:count], products[step])
                kernels.gate_forward(
                    count, size, inputs_at[start], None, gates_at[start], triple, bias_at.base, hidden,
                    gates_at[start], triple, candidates_at[start], states_at[start],
                )  # fmt: skip
                hidden, start = states_at[start], start + count
        ctx.save_for_backward(weight, states, gates, candidates)
        ctx.packing, ctx.kernels, ctx.narrow = packing, kernels, narrow
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of inputs, weight and bias."""
        weight, states, gates, candidates = ctx.saved_tensors
        packing: Packing = ctx.packing
        num_directions, _, size = states.shape
        first, counts, starts = packing.num_first, packing.counts, _starts(packing)
        totals = gradient.clone(memory_format=torch.contiguous_format)  # of the loss by the state after each token
        to_inputs, to_products = torch.empty_like(gates), torch.empty_like(gates)
        zeros = states.new_zeros(first, size)
        for direction in range(num_directions):
            recurrent = factor_of(weight[direction], ctx.narrow)
            earlier = totals[direction].split_with_sizes(counts)
            products = to_products[direction].split_with_sizes(counts)
            totals_at, gates_at, candidates_at, states_at, inputs_at, products_at = (
                _Rows(tensor[direction]) for tensor in (totals, gates, candidates, states, to_inputs, to_products)
            )
            for step in reversed(range(len(counts))):
                start, count = starts[step], counts[step]
                ctx.kernels.gate_backward(
                    count, size, totals_at[start], gates_at[start], 3 * size, candidates_at[start],
                    states_at[starts[step - 1]] if step else zeros.data_ptr(), inputs_at[start], products_at[start],
                    3 * size, totals_at[starts[step - 1]] if step else None,
                )  # fmt: skip
                if step:
                    recurrent.add(products[step], earlier[step - 1][:count])
        previous = _previous(states, packing, dim=1)
        if ctx.narrow:
            pairs = zip(to_products[:, first:], previous, strict=True)
            to_weight = torch.stack([multiply_transposed(ours, before, narrow=True) for ours, before in pairs])
        else:
            to_weight = torch.bmm(to_products[:, first:].transpose(1, 2), previous)
        return None, None, to_inputs, to_weight, to_products.sum(dim=1)


class NativeAttendedScan(torch.autograd.Function):
    """AttendedScan with kernels; the memory's rows are in the batch's own order."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        packing: Packing,
        recorded: bool,
        inputs: Tensor,
        initial: Tensor,
        annotations: Tensor,
        keys: Tensor,
        attention_bias: Tensor,
        weight: Tensor,
        bias: Tensor,
        energy: Tensor,
        context_weight: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return states [N, H] and contexts [N, C]; shapes as in AttendedScan."""
        inputs, annotations, keys, attention_bias, bias, energy = (
            tensor.contiguous() for tensor in (inputs, annotations, keys, attention_bias, bias, energy)
        )
        (_, num_positions, attention), memory_size = keys.shape, annotations.shape[2]
        num_tokens, size, counts = len(packing.positions), len(initial), packing.counts
        first, narrow = packing.num_first, are_narrow(inputs, weight)
        width = 3 * size + attention
        kept = num_tokens if recorded else first
        hiddens = inputs.new_empty(num_tokens, size)
        contexts = inputs.new_empty(num_tokens, memory_size)
        # Unrecorded, every step writes over the one before: room for the rows of the first, the largest, is enough.
        products, weights, candidates = (inputs.new_empty(kept, wide) for wide in (width, num_positions, size))
        scratch = inputs.new_empty(first, 3 * size)
        hiddens[:first] = initial
        inputs_at, hiddens_at, contexts_at, products_at, weights_at, candidates_at = map(
            _Rows, (inputs, hiddens, contexts, products, weights, candidates)
        )
        memory = [tensor.data_ptr() for tensor in (packing.order, keys, annotations, attention_bias)]
        bias_at, queries = bias.data_ptr(), 3 * size * bias.element_size()
        transposed, context_transposed = factor_of(weight.t(), narrow), factor_of(context_weight.t(), narrow)
        hidden_rows, context_rows = hiddens.split_with_sizes(counts), contexts.split_with_sizes(counts)
        product_rows = products.split_with_sizes(counts) if recorded else [products[:count] for count in counts]
        start = 0
        for step, count in enumerate(counts):
            keep = start if recorded else 0
            # Without its bias, which the kernels add where they read the product anyway.
            transposed.write(hidden_rows[step], product_rows[step])
            kernels.attention_forward(
                count, num_positions, attention, memory_size, *memory, products_at[keep] + queries, width,
                bias_at + queries,
                energy.data_ptr(), weights_at[keep], contexts_at[start],
            )  # fmt: skip
            if step + 1 < len(counts):
                going, following = counts[step + 1], start + count
                context_transposed.write(context_rows[step][:going], scratch[:going])
                kernels.gate_forward(
                    going, size, inputs_at[following - first], scratch.data_ptr(), products_at[keep], width, bias_at,
                    hiddens_at[start], products_at[keep], width, candidates_at[keep], hiddens_at[following],
                )  # fmt: skip
            start += count
        if recorded:
            ctx.save_for_backward(
                annotations, keys, weight, energy, context_weight, hiddens, contexts, products, weights, candidates
            )
            ctx.packing, ctx.kernels, ctx.narrow = packing, kernels, narrow
        return hiddens, contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor, by_contexts: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of all tensors but the attention bias."""
        (annotations, keys, weight, energy, context_weight, hiddens, contexts, products, weights,
         candidates) = ctx.saved_tensors  # fmt: skip
        packing: Packing = ctx.packing
        kernels: Kernels = ctx.kernels
        (num_tokens, size), first, counts, starts = hiddens.shape, packing.num_first, packing.counts, _starts(packing)
        (_, num_positions, attention), memory_size, width = keys.shape, annotations.shape[2], products.shape[1]
        to_inputs = hiddens.new_empty(num_tokens - first, 3 * size)
        to_products = torch.empty_like(products)
        to_states, to_contexts = (
            tensor.clone(memory_format=torch.contiguous_format) for tensor in (by_states, by_contexts)
        )
        to_keys, to_annotations, to_energy = map(torch.zeros_like, (keys, annotations, energy))
        work = weights.new_empty(num_positions)
        (inputs_at, hiddens_at, products_at, weights_at, candidates_at, to_states_at, to_contexts_at,
         to_products_at) = map(
            _Rows, (to_inputs, hiddens, products, weights, candidates, to_states, to_contexts, to_products)
        )  # fmt: skip
        memory = [tensor.data_ptr() for tensor in (packing.order, keys, annotations)]
        queries = 3 * size * hiddens.element_size()
        state_rows, product_rows = to_states.split_with_sizes(counts), to_products.split_with_sizes(counts)
        by_product, by_context = factor_of(weight, ctx.narrow), factor_of(context_weight, ctx.narrow)
        for step in reversed(range(len(counts))):
            start, count, going = starts[step], counts[step], 0
            if step + 1 < len(counts):
                following, going = starts[step + 1], counts[step + 1]
                kernels.gate_backward(
                    going, size, to_states_at[following], products_at[start], width, candidates_at[start],
                    hiddens_at[start], inputs_at[following - first], to_products_at[start], width, to_states_at[start],
                )  # fmt: skip
                by_gates = to_inputs[following - first : following - first + going]
                by_context.add(by_gates, to_contexts[start : start + going])
            # Rows that end here go through no gates after it; the array was not zeroed.
            if going < count:
                to_products[start + going : start + count, : 3 * size] = 0
            kernels.attention_backward(
                count, num_positions, attention, memory_size, *memory, products_at[start] + queries, width,
                energy.data_ptr(),
                weights_at[start], to_contexts_at[start], work.data_ptr(), to_products_at[start] + queries, width,
                to_keys.data_ptr(), to_energy.data_ptr(),
            )  # fmt: skip
            # Last, since the gates above and the queries have both written their part of the product by now.
            by_product.add(product_rows[step], state_rows[step])
        # Under a name of its own: the kernel has its address alone, and the tensor must live as long.
        counted = torch.tensor(counts, device=weights.device)
        kernels.sum_of_products(
            len(counts), counted.data_ptr(), packing.order.data_ptr(), num_positions, memory_size, weights.data_ptr(),
            to_contexts.data_ptr(), to_annotations.data_ptr(),
        )  # fmt: skip
        return (
            None,
            None,
            None,
            to_inputs,
            to_states[:first].sum(dim=0),
            to_annotations,
            to_keys.mul_(energy),  # the factor that all its addends share
            None,
            multiply_transposed(to_products, hiddens, ctx.narrow),
            to_products.sum(dim=0),
            to_energy,
            multiply_transposed(to_inputs, _previous(contexts, packing, dim=0), ctx.narrow),
        )


class _Rows:
    """The addresses of the rows of a contiguous array; it must outlive their use."""

    def __init__(self, array: Tensor) -> None:
        self.base = array.data_ptr()
        self.stride = array.stride(0) * array.element_size()

    def __getitem__(self, row: int) -> int:
        return self.base + row * self.stride


def _starts(packing: Packing) -> list[int]:
    """Return the packed position of each step's first row."""
    return [end - count for end, count in zip(accumulate(packing.counts), packing.counts, strict=True)]


def _previous(rows: Tensor, packing: Packing, dim: int) -> Tensor:
    """Return, for every token from the second step on, the row of the same example's token before."""
    counts = packing.counts
    # Rows of one length all go on to the end: a view, and no gathered copy.
    if counts[0] == counts[-1]:
        return rows.narrow(dim, 0, rows.shape[dim] - counts[0])
    return rows.index_select(dim, packing.previous)
