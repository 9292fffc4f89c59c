"""The loops of decoder and encoder with a backward pass written by hand.

PyTorch's own graph of such a loop makes one small product for every weight gradient at every step, and keeps and frees
dozens of small tensors. Here a step of the backward pass does only what the step before it needs; all weight gradients
are one product each after the loop, and what a gate contributes to its derivative is computed for all steps at once.
`use_plain_loops` gives the straightforward loops, which the tests hold ours to.

A gate step, with inputs i and recurrent part p = W s + b, each of three parts:

    r, z = σ(i_rz + p_rz),   n = tanh(i_n + r p_n),   s' = n + z (s − n)

Shapes: B examples, N their tokens in packed order, S positions of the memory, C their size, A attention size, H state.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqcritic.models.gru.native_recurrence import NativeAttendedScan, NativeGatedScan
from seqcritic.native.kernels import kernels_for
from seqcritic.tensors.packing import Packing, gather_rows, scatter_rows

aten = torch.ops.aten


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
    # In the order of the formula backwards: s' by n, by z, and by r through p_n.
    torch.mul(1 - update, 1 - candidates.square(), out=by_candidate)
    torch.mul(hiddens - candidates, update * (1 - update), out=by_inputs[..., 1, :])
    torch.mul(by_candidate * recurrent[..., 2 * size : 3 * size], reset * (1 - reset), out=by_inputs[..., 0, :])
    # p enters as i does, but for the candidate, where r stands before it.
    by_recurrent = by_inputs.clone()
    by_recurrent[..., 2, :].mul_(reset)
    return by_inputs, by_recurrent


class GatedScan(torch.autograd.Function):
    """A GRU over D independent directions at once, each with its own weights; all start from a state of zeros."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, packing: Packing) -> Tensor:
        """Return states [D, N, H] for inputs [D, N, 3H], weight [D, 3H, H] and bias [D, 3H]."""
        num_directions, num_tokens, triple = inputs.shape
        size = triple // 3
        states = inputs.new_empty(num_directions, num_tokens, size)
        recurrent = torch.empty_like(inputs)
        gates = inputs.new_empty(num_directions, num_tokens, 2 * size)
        candidates = torch.empty_like(states)
        before = inputs.new_zeros(num_directions, packing.num_first, size)
        transposed = weight.transpose(1, 2)
        for rows in _steps(packing):
            count = rows.stop - rows.start
            # Rows are sorted by length: those that still go on are the first ones of the step before.
            before = before[:, :count]
            for direction in range(num_directions):
                torch.addmm(bias[direction], before[direction], transposed[direction], out=recurrent[direction, rows])
            after = states[:, rows]
            gate_step(inputs[:, rows], recurrent[:, rows], before, gates[:, rows], candidates[:, rows], after)
            before = after
        ctx.save_for_backward(weight, states, recurrent, gates, candidates)
        ctx.packing = packing
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of inputs, weight and bias."""
        weight, states, recurrent, gates, candidates = ctx.saved_tensors
        packing: Packing = ctx.packing
        num_directions, num_tokens, size = gradient.shape
        before = torch.zeros_like(states)
        before[:, packing.num_first :] = states.index_select(1, packing.previous)
        # Slopes do not depend on what comes back, so that all steps have theirs at once, outside of the loop.
        by_inputs, by_recurrent = gate_slopes(recurrent, gates, candidates, before)
        totals = gradient.clone(memory_format=torch.contiguous_format)  # of the loss by the state after each token
        to_recurrent = torch.empty_like(by_recurrent)
        flat = to_recurrent.view(num_directions, num_tokens, 3 * size)
        steps = _steps(packing)
        for step in reversed(range(len(steps))):
            rows = steps[step]
            total = totals[:, rows]
            torch.mul(total.unsqueeze(-2), by_recurrent[:, rows], out=to_recurrent[:, rows])
            if step:
                start = steps[step - 1].start
                earlier = totals[:, start : start + rows.stop - rows.start]
                # Two ways lead back to the state before: through the update gate, and through the products of all three
                # gates.
                earlier.addcmul_(total, gates[:, rows, size:])
                for direction in range(num_directions):
                    earlier[direction].addmm_(flat[direction, rows], weight[direction])
        # Weights have one product each over all steps: in the loop they would be many small ones.
        to_inputs = totals.unsqueeze(-2).mul(by_inputs).view(num_directions, num_tokens, 3 * size)
        return to_inputs, torch.bmm(flat.transpose(1, 2), before), flat.sum(dim=1), None


class AttendedScan(torch.autograd.Function):
    """The decoder's loop: a context with the present state, a gate step with it, and so on.

    [p_t | q_t] = W s_t + b,   α_t = softmax(σ(keys + q_t) v + attention_bias),   c_t = Σ_j α_tj h_j
    i_t = x_t + G c_t,   s_{t+1} = gate step(i_t, p_t, s_t)
    """

    @staticmethod
    def forward(
        ctx: Any,
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
        """Return states [N, H] and contexts [N, C]; what backward needs is kept only where it is recorded.

        Inputs x of the second step and those after it [N − num_first, 3H], initial state [H], annotations [B, S, C],
        keys [B, S, A] and attention bias [B, S] of the rows in the packing's order, weight [3H + A, H] and bias [3H +
        A] of the state's one product, energy v [A], context weight G [3H, C].
        """
        batch, num_positions, attention = keys.shape
        num_tokens, size, first = len(packing.positions), len(initial), packing.num_first
        kept = num_tokens if recorded else batch
        hiddens = inputs.new_empty(num_tokens, size)
        contexts = inputs.new_empty(num_tokens, annotations.shape[2])
        products = inputs.new_empty(kept, 3 * size + attention)
        activations = inputs.new_empty(kept, num_positions, attention)
        weights = inputs.new_empty(kept, 1, num_positions)
        gates = inputs.new_empty(kept, 2 * size)
        candidates = inputs.new_empty(kept, size)
        transposed, context_transposed = weight.t(), context_weight.t()
        hiddens[:first] = initial
        steps = _steps(packing)
        for step, rows in enumerate(steps):
            count = rows.stop - rows.start
            # Unrecorded, every step writes over the one before.
            keep = rows if recorded else slice(0, count)
            product = torch.addmm(bias, hiddens[rows], transposed, out=products[keep])
            activation = torch.add(keys[:count], product[:, None, 3 * size :], out=activations[keep]).sigmoid_()
            energies = torch.addmv(attention_bias[:count].view(-1), activation.view(-1, attention), energy)
            torch.softmax(energies.view(count, 1, num_positions), dim=2, out=weights[keep])
            torch.bmm(weights[keep], annotations[:count], out=contexts[rows].unsqueeze(1))
            if step + 1 < len(steps):
                following = steps[step + 1]
                going = following.stop - following.start
                to = slice(following.start - first, following.stop - first)
                # The context has rows for all of this step; those that go on are the first ones.
                gate_inputs = torch.addmm(inputs[to], contexts[rows][:going], context_transposed)
                keep = to if recorded else slice(0, going)
                gate_step(
                    gate_inputs, product[:going], hiddens[rows][:going], gates[keep], candidates[keep],
                    hiddens[following],
                )  # fmt: skip
        if recorded:
            ctx.save_for_backward(
                annotations, weight, energy, context_weight, hiddens, contexts, products, activations, weights,
                gates[: num_tokens - first], candidates[: num_tokens - first],
            )  # fmt: skip
            ctx.packing = packing
        return hiddens, contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor, by_contexts: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of all tensors but the attention bias."""
        (annotations, weight, energy, context_weight, hiddens, contexts, products, activations, weights, gates,
         candidates) = ctx.saved_tensors  # fmt: skip
        packing: Packing = ctx.packing
        size, first = hiddens.shape[1], packing.num_first
        batch, (_, num_positions, attention) = len(annotations), activations.shape
        before = hiddens.index_select(0, packing.previous)
        by_inputs, by_recurrent = gate_slopes(products.index_select(0, packing.previous), gates, candidates, before)
        to_inputs = torch.empty_like(by_inputs)  # [N − first, 3, H]
        to_products = torch.empty_like(products)
        to_contexts = by_contexts.clone(memory_format=torch.contiguous_format)
        to_energies = torch.empty_like(weights)  # [N, 1, S]
        to_keys = activations.new_zeros(batch, num_positions, attention)
        to_states = by_states.clone(memory_format=torch.contiguous_format)
        steps = _steps(packing)
        for step in reversed(range(len(steps))):
            rows = steps[step]
            count, going = rows.stop - rows.start, 0
            if step + 1 < len(steps):
                following = steps[step + 1]
                going = following.stop - following.start
                total, at = to_states[following], slice(following.start - first, following.stop - first)
                on = slice(rows.start, rows.start + going)
                torch.mul(total[:, None], by_inputs[at], out=to_inputs[at])
                to_contexts[on].addmm_(to_inputs[at].view(going, 3 * size), context_weight)
                torch.mul(total[:, None], by_recurrent[at], out=to_products[on, : 3 * size].view(going, 3, size))
                to_states[on].addcmul_(total, gates[at, size:])
            # Rows that end here go through no gates after it; the array was not zeroed.
            to_products[rows.start + going : rows.stop, : 3 * size] = 0
            to_weights = torch.bmm(to_contexts[rows].unsqueeze(1), annotations[:count].transpose(1, 2))
            to_energies[rows] = aten._softmax_backward_data(to_weights, weights[rows], 2, weights.dtype)
            # The factor v of each unit is left out here: the queries get it below, the keys after the loop.
            spread = to_energies[rows].view(count, num_positions, 1).expand(count, num_positions, attention)
            to_activations = aten.sigmoid_backward(spread, activations[rows])
            to_keys[:count] += to_activations
            torch.mul(to_activations.sum(dim=1), energy, out=to_products[rows, 3 * size :])
            to_states[rows].addmm_(to_products[rows], weight)
        flat_inputs = to_inputs.view(-1, 3 * size)
        return (
            None,
            None,
            flat_inputs,
            to_states[:first].sum(dim=0),
            _sum_of_products(weights[:, 0], to_contexts, packing, batch),
            to_keys * energy,
            None,
            to_products.t() @ hiddens,
            to_products.sum(dim=0),
            activations.view(-1, attention).t() @ to_energies.view(-1),
            flat_inputs.t() @ contexts.index_select(0, packing.previous),
        )


def _steps(packing: Packing) -> list[slice]:
    """Return the packed positions of every step."""
    ends = list(accumulate(packing.counts))
    return [slice(end - count, end) for end, count in zip(ends, packing.counts, strict=True)]


def _sum_of_products(weights: Tensor, values: Tensor, packing: Packing, batch: int) -> Tensor:
    """Return Σ_t w_t v_tᵀ, [B, S, C], of packed weights [N, S] and values [N, C]: one product a row."""
    num_steps = len(packing.counts)
    positions = torch.cat(
        [torch.arange(count, device=weights.device) * num_steps + step for step, count in enumerate(packing.counts)]
    )
    padded = (scatter_rows(rows, positions, batch * num_steps).view(batch, num_steps, -1) for rows in (weights, values))
    by_weight, by_value = padded
    return torch.bmm(by_weight.transpose(1, 2), by_value)


def gated_scan(inputs: Tensor, weight: Tensor, bias: Tensor, packing: Packing) -> Tensor:
    """Return states [D, N, H]; see GatedScan."""
    kernels = kernels_for(inputs)
    states: Tensor
    if kernels is not None:
        states = NativeGatedScan.apply(kernels, packing, inputs, weight, bias)  # type: ignore[no-untyped-call]
    else:
        states = GatedScan.apply(inputs, weight, bias, packing)  # type: ignore[no-untyped-call]
    return states


def attended_scan(
    packing: Packing, inputs: Tensor, initial: Tensor, memory: tuple[Tensor, Tensor, Tensor], *weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Return states [N, H] and contexts [N, C]; see AttendedScan. The memory's rows are in the batch's own order."""
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (inputs, initial, *memory, *weights))
    kernels = kernels_for(inputs)
    result: tuple[Tensor, Tensor]
    if kernels is not None:
        result = NativeAttendedScan.apply(  # type: ignore[no-untyped-call]
            kernels, packing, recorded, inputs, initial, *memory, *weights
        )
    else:
        # Kernels find a row of the memory by `order`; PyTorch's products need the rows sorted as the steps are.
        ordered = (gather_rows(field, packing.order) for field in memory)
        result = AttendedScan.apply(  # type: ignore[no-untyped-call]
            packing, recorded, inputs, initial, *ordered, *weights
        )
    return result
