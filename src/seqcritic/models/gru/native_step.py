"""A single step of the decoder without a graph, its elementwise work in compiled kernels: sampling and search.

Shapes: B examples, S positions of the memory, C their size, A attention size, H state.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.models.gru.attention import EncoderMemory
from seqcritic.models.gru.recurrence import plain_loops
from seqcritic.native.kernels import Kernels, kernels_for


def step_kernels(tensor: Tensor) -> Kernels | None:
    """Return the kernels for a step, or None where a graph or the plain loops need PyTorch's own operations."""
    return None if torch.is_grad_enabled() or plain_loops() else kernels_for(tensor)


def compute_context(kernels: Kernels, product: Tensor, energy: Tensor, memory: EncoderMemory) -> Tensor:
    """Return the context [B, C] for the queries, the last A columns of the state's product [B, 3H + A]."""
    annotations, keys, attention_bias = (field.contiguous() for field in memory[:3])
    (batch, num_positions, attention), memory_size, width = keys.shape, annotations.shape[2], product.shape[1]
    weights, context = product.new_empty(batch, num_positions), product.new_empty(batch, memory_size)
    zeros = product.new_zeros(attention)  # the product has its bias
    queries = product.data_ptr() + (width - attention) * product.element_size()
    kernels.attention_forward(
        batch, num_positions, attention, memory_size, None, keys.data_ptr(), annotations.data_ptr(),
        attention_bias.data_ptr(),
        queries, width, zeros.data_ptr(), energy.data_ptr(), weights.data_ptr(), context.data_ptr(),
    )  # fmt: skip
    return context


def next_hidden(kernels: Kernels, inputs: Tensor, by_context: Tensor, gates: Tensor, hidden: Tensor) -> Tensor:
    """Return the GRU's next state [B, H] from the three shares [B, 3H] of its gates; `gates` may be columns of more."""
    inputs, hidden = inputs.contiguous(), hidden.contiguous()
    gates = gates if gates.stride(1) == 1 else gates.contiguous()
    batch, size = hidden.shape
    fresh, candidate = torch.empty_like(hidden), torch.empty_like(hidden)
    zeros, work = hidden.new_zeros(3 * size), hidden.new_empty(3 * size)  # a stride of 0: no row's gates are kept
    kernels.gate_forward(
        batch, size, inputs.data_ptr(), by_context.data_ptr(), gates.data_ptr(), gates.stride(0), zeros.data_ptr(),
        hidden.data_ptr(), work.data_ptr(), 0, candidate.data_ptr(), fresh.data_ptr(),
    )  # fmt: skip
    return fresh
