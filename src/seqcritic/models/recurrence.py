"""The loops of decoder and encoder with a backward pass written by hand.

PyTorch's own graph of such a loop makes one small product for every weight gradient at every step, and keeps and frees
dozens of small tensors. Here a step of the backward pass does only what the step before it needs; all weight gradients
are one product each after the loop, and what a gate contributes to its derivative is computed for all steps at once.
`reference_loops` gives the straightforward loops, which the tests hold ours to.

A gate step, with inputs i and recurrent part p = W s + b, each of three parts:

    r, z = σ(i_rz + p_rz),   n = tanh(i_n + r p_n),   s' = n + z (s − n)

Shapes: B examples, T steps, S places of the memory, C their size, A attention size, H state; buffers are time-major.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

aten = torch.ops.aten
_plain = False


def plain_loops() -> bool:
    """Whether the reference loops are asked for, or needed: mixed precision chooses a type for every operation."""
    return _plain or torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


@contextmanager
def reference_loops() -> Iterator[None]:
    """Use PyTorch's graph of the straightforward loops in place of ours, for tests and benchmarks."""
    global _plain
    before, _plain = _plain, True
    try:
        yield
    finally:
        _plain = before


def gate_step(inputs: Tensor, recurrent: Tensor, hidden: Tensor, gates: Tensor, candidate: Tensor, out: Tensor) -> None:
    """Write the next state s' [..., H] to `out`, r and z to `gates` [..., 2H], n to `candidate` [..., H]."""
    size = hidden.shape[-1]
    torch.add(inputs[..., : 2 * size], recurrent[..., : 2 * size], out=gates).sigmoid_()
    torch.addcmul(inputs[..., 2 * size :], gates[..., :size], recurrent[..., 2 * size : 3 * size], out=candidate)
    candidate.mul_(2).sigmoid_().mul_(2).sub_(1)  # tanh x = 2σ(2x) − 1: a third of the time of tanh on a CPU
    torch.lerp(candidate, hidden, gates[..., size:], out=out)


def gate_slopes(recurrent: Tensor, gates: Tensor, candidates: Tensor, hiddens: Tensor) -> tuple[Tensor, Tensor]:
    """Return ds'/di and ds'/dp, both [..., 3, H], elementwise, for all steps at once; ds'/ds along the gate is z."""
    size = candidates.shape[-1]
    reset, update = gates[..., :size], gates[..., size:]
    by_inputs = torch.empty(*candidates.shape[:-1], 3, size, dtype=gates.dtype, device=gates.device)
    by_candidate = by_inputs[..., 2, :]
    torch.mul(1 - update, 1 - candidates.square(), out=by_candidate)
    torch.mul(hiddens - candidates, update * (1 - update), out=by_inputs[..., 1, :])
    torch.mul(by_candidate * recurrent[..., 2 * size : 3 * size], reset * (1 - reset), out=by_inputs[..., 0, :])
    by_recurrent = by_inputs.clone()
    by_recurrent[..., 2, :].mul_(reset)
    return by_inputs, by_recurrent


class GatedScan(torch.autograd.Function):
    """A GRU over D independent directions at once, each with its own weights; all start from a state of zeros."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return states [T, D, B, H] for inputs [T, D, B, 3H], weight [D, 3H, H] and bias [D, 3H]."""
        num_steps, num_directions, batch, triple = inputs.shape
        size = triple // 3
        hiddens = inputs.new_zeros(num_steps + 1, num_directions, batch, size)
        recurrent = torch.empty_like(inputs)
        gates = inputs.new_empty(num_steps, num_directions, batch, 2 * size)
        candidates = inputs.new_empty(num_steps, num_directions, batch, size)
        transposed = weight.transpose(1, 2)
        for step in range(num_steps):
            for direction in range(num_directions):
                torch.addmm(
                    bias[direction], hiddens[step, direction], transposed[direction], out=recurrent[step, direction]
                )
            gate_step(inputs[step], recurrent[step], hiddens[step], gates[step], candidates[step], hiddens[step + 1])
        ctx.save_for_backward(weight, hiddens, recurrent, gates, candidates)
        return hiddens[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of inputs, weight and bias."""
        weight, hiddens, recurrent, gates, candidates = ctx.saved_tensors
        num_steps, num_directions, batch, size = gradient.shape
        by_inputs, by_recurrent = gate_slopes(recurrent, gates, candidates, hiddens[:-1])
        totals = torch.empty_like(candidates)  # of the loss by the state after each step
        to_recurrent = torch.empty_like(by_recurrent)
        flat = to_recurrent.view(num_steps, num_directions, batch, 3 * size)
        totals[-1] = gradient[-1]
        for step in reversed(range(num_steps)):
            torch.mul(totals[step].unsqueeze(-2), by_recurrent[step], out=to_recurrent[step])
            if step:
                torch.addcmul(gradient[step - 1], totals[step], gates[step, ..., size:], out=totals[step - 1])
                for direction in range(num_directions):
                    totals[step - 1, direction].addmm_(flat[step, direction], weight[direction])
        to_inputs = (totals.unsqueeze(-2) * by_inputs).view(num_steps, num_directions, batch, 3 * size)
        by_direction = flat.transpose(0, 1).reshape(num_directions, -1, 3 * size)
        states = hiddens[:-1].transpose(0, 1).reshape(num_directions, -1, size)
        return to_inputs, torch.bmm(by_direction.transpose(1, 2), states), by_direction.sum(dim=1)


class AttendedScan(torch.autograd.Function):
    """The decoder's loop: a glimpse with the present state, a gate step with it, and so on.

    [p_t | q_t] = W s_t + b,   α_t = softmax(σ(keys + q_t) v + penalty),   c_t = Σ_j α_tj h_j
    i_t = x_t + G c_t,   s_{t+1} = gate step(i_t, p_t, s_t)
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        initial: Tensor,
        annotations: Tensor,
        keys: Tensor,
        penalty: Tensor,
        weight: Tensor,
        bias: Tensor,
        energy: Tensor,
        glimpse_weight: Tensor,
        recorded: bool,
    ) -> tuple[Tensor, Tensor]:
        """Return states [T, B, H] and glimpses [T, B, C]; what backward needs is kept only where it is recorded.

        Inputs x [T − 1, B, 3H], initial state [H], annotations [B, S, C], keys [B, S, A], penalty [B, S], weight
        [3H + A, H] and bias [3H + A] of the state's one product, energy v [A], glimpse weight G [3H, C].
        """
        batch, places, attention = keys.shape
        num_steps, size = len(inputs) + 1, len(initial)
        kept = num_steps if recorded else 1
        hiddens = inputs.new_empty(num_steps, batch, size)
        glimpses = inputs.new_empty(num_steps, batch, annotations.shape[2])
        products = inputs.new_empty(kept, batch, 3 * size + attention)
        activations = inputs.new_empty(kept, batch, places, attention)
        weights = inputs.new_empty(kept, batch, 1, places)
        gates = inputs.new_empty(kept, batch, 2 * size)
        candidates = inputs.new_empty(kept, batch, size)
        transposed, glimpse_transposed = weight.t(), glimpse_weight.t()
        hiddens[0] = initial
        for step in range(num_steps):
            at = step if recorded else 0
            product = torch.addmm(bias, hiddens[step], transposed, out=products[at])
            activation = torch.add(keys, product[:, None, 3 * size :], out=activations[at]).sigmoid_()
            energies = torch.addmv(penalty.view(-1), activation.view(-1, attention), energy)
            torch.softmax(energies.view(batch, 1, places), dim=2, out=weights[at])
            torch.bmm(weights[at], annotations, out=glimpses[step].unsqueeze(1))
            if step + 1 < num_steps:
                gate_inputs = torch.addmm(inputs[step], glimpses[step], glimpse_transposed)
                gate_step(gate_inputs, product, hiddens[step], gates[at], candidates[at], hiddens[step + 1])
        if recorded:
            ctx.save_for_backward(
                annotations, weight, energy, glimpse_weight, hiddens, glimpses, products, activations, weights, gates,
                candidates,
            )  # fmt: skip
        return hiddens, glimpses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor, by_glimpses: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of all inputs but the penalty."""
        (annotations, weight, energy, glimpse_weight, hiddens, glimpses, products, activations, weights, gates,
         candidates) = ctx.saved_tensors  # fmt: skip
        num_steps, batch, size = hiddens.shape
        places, attention = activations.shape[2:]
        by_inputs, by_recurrent = gate_slopes(products[:-1], gates[:-1], candidates[:-1], hiddens[:-1])
        to_inputs = hiddens.new_empty(num_steps - 1, batch, 3, size)
        to_products = torch.empty_like(products)
        to_glimpses = by_glimpses.contiguous().clone()
        to_energies = torch.empty_like(weights)  # [T, B, 1, S]
        to_keys = torch.zeros_like(activations[0])
        to_hidden = by_states[-1]  # of the loss by the state of this step, what follows it included
        for step in reversed(range(num_steps)):
            total = to_hidden
            if step + 1 < num_steps:
                torch.mul(total[:, None], by_inputs[step], out=to_inputs[step])
                to_glimpses[step].addmm_(to_inputs[step].view(batch, 3 * size), glimpse_weight)
                recurrent = to_products[step, :, : 3 * size].view(batch, 3, size)
                torch.mul(total[:, None], by_recurrent[step], out=recurrent)
                to_hidden = torch.addcmul(by_states[step], total, gates[step, :, size:])
            else:
                to_products[step, :, : 3 * size] = 0
            to_weights = torch.bmm(to_glimpses[step].unsqueeze(1), annotations.transpose(1, 2))
            to_energies[step] = aten._softmax_backward_data(to_weights, weights[step], 2, weights.dtype)
            spread = to_energies[step].view(batch, places, 1).expand(batch, places, attention)
            to_activations = aten.sigmoid_backward(spread, activations[step])
            to_keys += to_activations
            torch.mul(to_activations.sum(dim=1), energy, out=to_products[step, :, 3 * size :])
            to_hidden = torch.addmm(to_hidden, to_products[step], weight)
        flat_products = to_products.view(num_steps * batch, -1)
        flat_inputs = to_inputs.view(-1, 3 * size)
        return (
            to_inputs.view(num_steps - 1, batch, 3 * size),
            to_hidden.sum(dim=0),
            torch.bmm(weights[:, :, 0].permute(1, 2, 0), to_glimpses.transpose(0, 1)),
            to_keys * energy,
            None,
            flat_products.t() @ hiddens.view(num_steps * batch, size),
            flat_products.sum(dim=0),
            activations.view(-1, attention).t() @ to_energies.view(-1),
            flat_inputs.t() @ glimpses[:-1].reshape(len(flat_inputs), glimpses.shape[2]),
            None,
        )


class Rearrangement(torch.autograd.Function):
    """Rows in another order; where PyTorch would add up gradients row by row, ours is the same step back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor) -> Tensor:
        """Return rows [N, F] in the given order [N], which is its own inverse."""
        ctx.save_for_backward(order)
        return rows.index_select(0, order)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the rows."""
        (order,) = ctx.saved_tensors
        return gradient.index_select(0, order), None


def gated_scan(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return states [T, D, B, H]; see GatedScan."""
    states: Tensor = GatedScan.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return states


def attended_scan(*tensors: Tensor) -> tuple[Tensor, Tensor]:
    """Return states [T, B, H] and glimpses [T, B, C]; see AttendedScan."""
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    result: tuple[Tensor, Tensor] = AttendedScan.apply(*tensors, recorded)  # type: ignore[no-untyped-call]
    return result


def rearrange(rows: Tensor, order: Tensor) -> Tensor:
    """Return rows [N, F] in an order [N] that is its own inverse."""
    result: Tensor = Rearrangement.apply(rows, order)  # type: ignore[no-untyped-call]
    return result
