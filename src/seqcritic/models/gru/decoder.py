"""The recurrent decoder with attention that actor and critic share: equations 3 to 6 of the paper.

    y_t ~ g(s_{t-1}, c_{t-1}),   s_t = f(s_{t-1}, c_{t-1}, e(y_t)),   c_t = context(s_t)

f is a GRU; s_0 is learned, c_0 is the context vector computed with it, before the first token. The output layer g is
one of those in output_layer.py. What depends only on the tokens is computed before the loop, the output layer after it,
and one product of the new state serves both the next gates and the query.

Shapes: B examples, T tokens, V vocabulary, H state, C memory, X extra input.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from seqcritic.models.gru.actors_vectors import TokenEmbedding
from seqcritic.models.gru.attention import Attention, EncoderMemory
from seqcritic.models.gru.dropout import Masks, draw_masks, masked
from seqcritic.models.gru.lookup import project_table, project_tokens
from seqcritic.models.gru.output_layer import build_output_layer
from seqcritic.models.gru.recurrence import attended_scan
from seqcritic.models.products import are_narrow, linear
from seqcritic.native.kernels import Kernels, kernels_for
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.packing import pack
from seqcritic.tensors.plain_loops import plain_loops
from seqcritic.tensors.rows import Shared


class Fixed(NamedTuple):
    """What the weights alone decide, computed once for all steps of a sequence."""

    weight: Tensor  # [3H + A, H], of the one product of the state
    bias: Tensor  # [3H + A]
    energy: Tensor  # [A], twice the attention's
    token_gates: Tensor | None  # [V, 3H], every token's part of the gates, where the vocabulary is small


class State(NamedTuple):
    """What the decoder knows before it emits the next token."""

    hidden: Tensor  # [B, H]
    context: Tensor  # [B, C]
    gates: Tensor  # [B, 3H], the state's part of the next gates
    fixed: Shared[Fixed]
    kept: Tensor | None  # [B, H + C], what dropout keeps of state and context in the output layer


def pass_gates(inputs: Tensor, gates: Tensor, hidden: Tensor) -> Tensor:
    """The GRU as one reads it: r, z = σ(x_rz + h_rz), n = tanh(x_n + r h_n), s' = n + z (s − n).

    From x [B, 3H], the inputs' part, h [B, 3H], the state's, and the state s [B, H]. Search goes on by this too; the
    loops of recurrence.py and the kernels are the fast form, which the tests hold to it.
    """
    size = hidden.shape[1]
    # Under autocast the products are narrower than the state, which is summed over the steps.
    inputs, gates = inputs.to(hidden.dtype), gates.to(hidden.dtype)
    reset, update = torch.sigmoid(inputs[:, : 2 * size] + gates[:, : 2 * size]).chunk(2, dim=1)
    candidate = torch.tanh(inputs[:, 2 * size :] + reset * gates[:, 2 * size :])
    return torch.lerp(candidate, hidden, update)


class Decoder(nn.Module):
    """A GRU with attention that reads one token (and an optional extra vector) a step."""

    def __init__(
        self,
        embedding: TokenEmbedding,
        hidden: int,
        memory_size: int,
        attention_size: int,
        extra_size: int = 0,
        dropout: float = 0.0,
        tied: bool = False,
        output_width: int | None = None,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.hidden = hidden
        self.initial = nn.Parameter(torch.zeros(hidden))
        self.token_gates = nn.Linear(embedding.embedding_dim, 3 * hidden)
        # Without a bias, as extra_gates: it would be added to that of token_gates.
        self.context_gates = nn.Linear(memory_size, 3 * hidden, bias=False)
        self.state_gates = nn.Linear(hidden, 3 * hidden)
        self.extra_gates = nn.Linear(extra_size, 3 * hidden, bias=False) if extra_size else None
        self.attention = Attention(hidden, memory_size, attention_size)
        self.dropout = dropout
        self.output_layer = build_output_layer(hidden + memory_size, embedding, tied, output_width)

    def draw_masks(self, num_rows: int, generator: torch.Generator, between: int = 0) -> Masks | None:
        """Return what is dropped of so many rows, of the encoder too, `between` units of it; None at rate 0."""
        features = self.hidden + self.context_gates.in_features
        sizes = (self.embedding.embedding_dim, features, between)
        return draw_masks(self.dropout, sizes, num_rows, generator, self.initial)

    def encode(self, encoder: nn.Module, tokens: Tensor, mask: Tensor, masks: Masks | None) -> EncoderMemory:
        """Return the memory of tokens [B, S] read by an encoder, to be decoded with these masks."""
        annotations = encoder(tokens, mask, masks)
        return self.attention.prepare_memory(annotations, mask, masks)

    def start(self, memory: EncoderMemory) -> State:
        """Return the state before the first token, its context computed."""
        num_rows = memory.annotations.shape[0]
        # With masks a token has another vector in every row, so that no table serves all.
        by_table = None
        if memory.masks is None:
            by_table = project_table(self.embedding, self.token_gates.weight, self.token_gates.bias, num_rows)
        fixed = Shared(Fixed(*self._state_product(), by_table))
        return self._look(memory, self.initial.expand(num_rows, self.hidden), fixed)

    def step(self, memory: EncoderMemory, state: State, tokens: Tensor, extra: Tensor | None = None) -> State:
        """Return the state after consuming tokens [B] and, where the decoder has one, the extra input [B, X]."""
        kept = None if memory.masks is None else memory.masks.decoder
        inputs = self._input_gates(tokens, extra, kept, by_table=state.fixed.content.token_gates)
        return self._look(memory, self._transition(state, inputs), state.fixed)

    def outputs(self, state: State) -> Tensor:
        """Return the outputs [B, V] of a state."""
        result: Tensor = self.output_layer(self.features_of(state))
        return result

    def features_of(self, state: State) -> Tensor:
        """Return the output layer's input of a state, [s; c] with its dropout, [B, H + C]."""
        return masked(torch.cat([state.hidden, state.context], dim=-1), state.kept)

    def run(self, memory: EncoderMemory, tokens: Tensor, extra: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return outputs [B, T, V] and states [B, T, H] at every step of given tokens [B, T].

        Entry t is computed before token t is consumed, so it depends on tokens 0..t-1 only; the last token
        is never consumed. `extra` [B, T, X]: entry t is consumed together with token t - 1.
        """
        features, states = self.features(memory, tokens, extra)
        return self.read(features).padded(), states

    def read(self, features: Packed) -> Packed:
        """Return the outputs [N, V] of packed features."""
        return features._replace(rows=self.output_layer(features.rows))

    def features(
        self, memory: EncoderMemory, tokens: Tensor, extra: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Packed, Tensor]:
        """Return what the outputs of `run` are made from, [s; c] with its dropout, packed, and states [B, T, H].

        Where a mask [B, T] is False nothing is computed: states there have no meaning.
        """
        if mask is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        if plain_loops():
            return self._features_plainly(memory, tokens, extra, mask)
        packing = pack(mask)
        # Positions are row · T + step, so one less is the same row's token before: the one that a step consumes.
        following = packing.positions[packing.num_first :]
        rows = packing.positions // tokens.shape[1]
        kept = memory.masks
        inputs = self._input_gates(
            tokens.reshape(-1)[following - 1],
            None if extra is None else extra.flatten(0, 1)[following],
            None if kept is None else kept.decoder,
            rows[packing.num_first :],
        )
        states, contexts = attended_scan(
            packing,
            inputs,
            self.initial,
            memory[:3],
            *self._state_product(),
            self.context_gates.weight,
        )
        read = masked(torch.cat([states, contexts], dim=1), None if kept is None else kept.features, rows)
        features = Packed(read, packing.positions, (tokens.shape[0], tokens.shape[1]))
        return features, features.spread(states)

    def _features_plainly(
        self, memory: EncoderMemory, tokens: Tensor, extra: Tensor | None, mask: Tensor
    ) -> tuple[Packed, Tensor]:
        """`features` as one reads it: the same equations, one step after the other, for all positions."""
        kept = memory.masks
        # The last token is consumed by nobody, and no extra input comes with the first state.
        inputs = self._input_gates(
            tokens[:, :-1], None if extra is None else extra[:, 1:], None if kept is None else kept.decoder
        )
        fixed = Shared(Fixed(*self._state_product(), None))
        state = self._look(memory, self.initial.expand(memory.annotations.shape[0], self.hidden), fixed)
        hiddens, contexts = [state.hidden], [state.context]
        for gates in inputs.unbind(dim=1):
            state = self._look(memory, self._transition(state, gates), fixed)
            hiddens.append(state.hidden)
            contexts.append(state.context)
        states = torch.stack(hiddens, dim=1)
        features = torch.cat([states, torch.stack(contexts, dim=1)], dim=2)
        return Packed.of(masked(features, None if kept is None else kept.features), mask), states

    def attend(self, memory: EncoderMemory, tokens: Tensor, extra: Tensor | None = None) -> Tensor:
        """Return the attention [B, T, S] at every step of given tokens [B, T]; entry t chose token t, as in `run`."""
        return self.attention.weights(self.run(memory, tokens, extra)[1], memory)

    def _input_gates(
        self,
        tokens: Tensor,
        extra: Tensor | None,
        kept: Tensor | None,
        rows: Tensor | None = None,
        by_table: Tensor | None = None,
    ) -> Tensor:
        """Return the input's part of the gates, [..., 3H], for tokens of any shape; `kept` [B, E] of embeddings."""
        gates = (
            project_tokens(self.embedding, self.token_gates.weight, self.token_gates.bias, tokens, kept, rows)
            if by_table is None
            else look_up(tokens, by_table)
        )
        if self.extra_gates is not None:
            assert extra is not None, "this decoder reads an extra input at every step"
            gates = gates + linear(extra, self.extra_gates.weight)
        return gates

    def _state_product(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the weights and bias of the one product of the state, and the energy vector, with factors of 2."""
        query = 2 * self.attention.query.weight
        # The attention has its bias in the keys, so the queries have zeros in this one product.
        bias = torch.cat([self.state_gates.bias, query.new_zeros(query.shape[0])])
        return torch.cat([self.state_gates.weight, query]), bias, 2 * self.attention.energy.weight[0]

    def _look(self, memory: EncoderMemory, hidden: Tensor, fixed: Shared[Fixed]) -> State:
        weight, bias, energy, _ = fixed.content
        product = linear(hidden, weight, bias)
        size = 3 * self.hidden
        kernels = step_kernels(product)
        if kernels is not None:
            context = compute_context(kernels, product, energy, memory)
        else:
            context, _ = self.attention.context(product[:, size:], energy, memory)
        return State(hidden, context, product[:, :size], fixed, None if memory.masks is None else memory.masks.features)

    def _transition(self, state: State, inputs: Tensor) -> Tensor:
        """The next hidden state [B, H] from the input's part [B, 3H] of the gates."""
        kernels = step_kernels(state.hidden)
        if kernels is not None:
            by_context = linear(state.context, self.context_gates.weight)
            return next_hidden(kernels, inputs, by_context, state.gates, state.hidden)
        if are_narrow(inputs, self.context_gates.weight):
            inputs = inputs + linear(state.context, self.context_gates.weight)
        else:
            # The sum is part of the product: no tensor for G c alone.
            inputs = torch.addmm(inputs, state.context, self.context_gates.weight.t())
        return pass_gates(inputs, state.gates, state.hidden)


def step_kernels(tensor: Tensor) -> Kernels | None:
    """Return the kernels for one step; None where a graph or the plain loops need PyTorch's own operations."""
    return None if torch.is_grad_enabled() or plain_loops() else kernels_for(tensor)


def compute_context(kernels: Kernels, product: Tensor, energy: Tensor, memory: EncoderMemory) -> Tensor:
    """Return the context [B, C] for the queries, the last A columns of the state's product [B, 3H + A]."""
    annotations, keys, attention_bias = (field.contiguous() for field in memory[:3])
    (batch, num_positions, attention), memory_size, width = keys.shape, annotations.shape[2], product.shape[1]
    weights, context = product.new_empty(batch, num_positions), product.new_empty(batch, memory_size)
    zeros = product.new_zeros(attention)  # the product has its bias
    # Queries are read where they stand, one row of the product apart: no copy of these columns.
    queries = product.data_ptr() + (width - attention) * product.element_size()
    # `order` is None: row i of the state attends to row i of the memory.
    kernels.attention_forward(
        batch, num_positions, attention, memory_size, None, keys.data_ptr(), annotations.data_ptr(),
        attention_bias.data_ptr(),
        queries, width, zeros.data_ptr(), energy.data_ptr(), weights.data_ptr(), context.data_ptr(),
    )  # fmt: skip
    return context


def next_hidden(kernels: Kernels, inputs: Tensor, by_context: Tensor, gates: Tensor, hidden: Tensor) -> Tensor:
    """Return the GRU's next state [B, H] from the three parts [B, 3H] of its gates; `gates` may be columns of more."""
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
