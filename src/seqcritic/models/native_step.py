"""A single step of the decoder without a graph, its elementwise work in compiled kernels: sampling and search.

Shapes: B examples, S places of the memory, C their size, A attention size, H state.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.models.attention import Memory
from seqcritic.models.recurrence import plain_loops
from seqcritic.native.kernels import Kernels, kernels_for


def step_kernels(tensor: Tensor) -> Kernels | None:
    """Return the kernels for a step, or None where a graph or the reference needs PyTorch's own operations."""
    return None if torch.is_grad_enabled() or plain_loops() else kernels_for(tensor)


def take_glimpse(kernels: Kernels, product: Tensor, energy: Tensor, memory: Memory) -> Tensor:
    """Return the glimpse [B, C] for the queries, the last A columns of the state's product [B, 3H + A]."""
    annotations, keys, penalty = (field.contiguous() for field in memory[:3])
    (batch, places, attention), memory_size, width = keys.shape, annotations.shape[2], product.shape[1]
    weights, glimpse = product.new_empty(batch, places), product.new_empty(batch, memory_size)
    zeros = product.new_zeros(attention)  # the product has its bias
    queries = product.data_ptr() + (width - attention) * product.element_size()
    kernels.attention_forward(
        batch, places, attention, memory_size, None, keys.data_ptr(), annotations.data_ptr(), penalty.data_ptr(),
        queries, width, zeros.data_ptr(), energy.data_ptr(), weights.data_ptr(), glimpse.data_ptr(),
    )  # fmt: skip
    return glimpse


def next_hidden(kernels: Kernels, inputs: Tensor, by_glimpse: Tensor, gates: Tensor, hidden: Tensor) -> Tensor:
    """Return the GRU's next state [B, H] from the three shares [B, 3H] of its gates; `gates` may be columns of more."""
    inputs, hidden = inputs.contiguous(), hidden.contiguous()
    gates = gates if gates.stride(1) == 1 else gates.contiguous()
    batch, size = hidden.shape
    fresh, candidate = torch.empty_like(hidden), torch.empty_like(hidden)
    zeros, work = hidden.new_zeros(3 * size), hidden.new_empty(3 * size)  # a stride of 0: no row's gates are kept
    kernels.gate_forward(
        batch, size, inputs.data_ptr(), by_glimpse.data_ptr(), gates.data_ptr(), gates.stride(0), zeros.data_ptr(),
        hidden.data_ptr(), work.data_ptr(), 0, candidate.data_ptr(), fresh.data_ptr(),
    )  # fmt: skip
    return fresh
