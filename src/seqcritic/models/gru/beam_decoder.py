"""The decoder for all hypotheses of a search at once, its weights and the memory prepared for the whole search.

The W hypotheses of an example look at one memory, and most of what a step does with the context c = Σ_j α_j h_j is
linear. So it is done to the memory, once: with G, the context's gates, and U = [U_s, U_c], the first matrix of the
output layer,

    G c = Σ_j α_j (G h_j),   U [s, c] = U_s s + Σ_j α_j (U_c h_j)

These are the equations of `Decoder` summed in another order, so the two agree up to rounding.

Shapes: R examples, W hypotheses of each, S positions of the memory, C their size, A attention size, H state,
F features that the matrix of the vocabulary is multiplied with, V vocabulary.
"""

from __future__ import annotations

import math
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding

from seqcritic.models.gru.attention import EncoderMemory
from seqcritic.models.gru.decoder import Decoder, pass_gates
from seqcritic.models.gru.dropout import masked
from seqcritic.models.gru.lookup import project_tokens
from seqcritic.models.gru.output_layer import LinearOutputLayer, ProjectedOutputLayer, TiedOutputLayer
from seqcritic.models.products import linear
from seqcritic.tensors import rows as all_rows

LIFTED = 1 << 25  # numbers that a memory times the matrix of the vocabulary may have: 128 MB in single precision


class Live(NamedTuple):
    """What is known of the hypotheses before their next tokens."""

    hidden: Tensor  # [R * W, H]
    gates: Tensor  # [R * W, 3H], the state's part of the next gates
    context_gates: Tensor  # [R * W, 3H], the context's
    features: Tensor  # [R * W, F]
    weights: Tensor  # [R, W, S], the attention


class BeamDecoder:
    """A decoder without extra input on a memory that its hypotheses share; nothing is recorded for gradients."""

    def __init__(self, decoder: Decoder, memory: EncoderMemory, width: int) -> None:
        assert decoder.extra_gates is None, "the actor's decoder reads tokens alone"
        self.decoder, self.keys, self.attention_bias = decoder, Keys(memory.keys), memory.attention_bias
        batch, num_positions, attention = memory.keys.shape
        self.masks = memory.masks
        # Dropped units differ from row to row: the layer before the vocabulary's then stays a product of its own.
        inner, inner_bias = (
            _inner_layer(decoder.output_layer) if self.masks is None else (None, decoder.output_layer.bias[:0])
        )
        self.weight, self.bias = decoder.output_layer.weight, decoder.output_layer.bias
        size = decoder.hidden
        # The keys of a memory are doubled (attention.py), so the queries and the energy vector have to be.
        product = [decoder.state_gates.weight, 2 * decoder.attention.query.weight]
        self.values = linear(
            memory.annotations, decoder.context_gates.weight
        )  # [R, S, 3H and, where it is an addend of the features, F]
        self.lifted: Tensor | None = None  # [R, S, V], U_c h where U is the matrix of the vocabulary itself
        self.projected, self.squashed = inner is not None, isinstance(decoder.output_layer, ProjectedOutputLayer)
        if inner is not None:
            product.append(inner[:, :size])
            self.values = torch.cat([self.values, linear(memory.annotations, inner[:, size:])], dim=2)
        # To lift a memory costs more than S steps save one hypothesis: only where several share it is that won back.
        elif self.masks is None and width > 1 and batch * num_positions * len(self.weight) <= LIFTED:
            self.lifted = linear(memory.annotations, self.weight[:, size:])
            self.weight = self.weight[:, :size]  # U_s alone: the context comes by `lifted`
        else:
            # The context itself, Σ_j α_j h_j, comes with its gates by one product.
            self.values = torch.cat([self.values, memory.annotations], dim=2)
        self.product = torch.cat(product)  # [3H + A and F, H]
        self.bounds = [3 * size, 3 * size + attention]
        bias = decoder.state_gates.bias
        # Queries have no bias of their own: the keys carry it, 2(U h + b).
        num_others = len(self.product) - len(bias) - len(inner_bias)
        self.product_bias = torch.cat([bias, bias.new_zeros(num_others), inner_bias])
        self.energy = 2 * decoder.attention.energy.weight[0]
        self.token_gates: Tensor | None = None  # [V, 3H]
        if (
            self.masks is None and decoder.embedding.num_embeddings <= batch * width * num_positions
        ):  # a guess: as many steps as positions
            self.token_gates = linear(decoder.embedding.weight, decoder.token_gates.weight, decoder.token_gates.bias)

    def start(self) -> Live:
        """Return one hypothesis for each example, before its first token."""
        return self._look(self.decoder.initial.expand(len(self.attention_bias), self.decoder.hidden))

    def keep(self, rows: Tensor) -> None:
        """Drop all examples but some."""
        # Hypotheses are not dropped here: the next step takes those that go on by `parents`.
        self.keys, self.attention_bias, self.values = (
            self.keys.select(rows),
            self.attention_bias[rows],
            self.values[rows],
        )
        self.masks = all_rows.select(self.masks, rows)
        if self.lifted is not None:
            self.lifted = self.lifted[rows]

    def step(self, live: Live, parents: Tensor, tokens: Tensor) -> Live:
        """Return the hypotheses that continue those at positions `parents` with `tokens`, both [R * W]."""
        # The parents' features and attention were for their own next token, which is chosen.
        hidden, gates, context_gates = (field.index_select(0, parents) for field in live[:3])
        return self._look(pass_gates(self._input_gates(tokens) + context_gates, gates, hidden))

    def logits(self, live: Live) -> Tensor:
        """Return the unnormalised log-probabilities [R * W, V] of the next token."""
        logits = linear(live.features, self.weight, self.bias)
        if self.lifted is None:
            return logits
        # U_s s + b from above, and Σ_j α_j (U_c h_j) of the lifted memory.
        return torch.baddbmm(logits.view(*live.weights.shape[:2], -1), live.weights, self.lifted).flatten(0, 1)

    def _input_gates(self, tokens: Tensor) -> Tensor:
        if self.token_gates is not None:
            return embedding(tokens, self.token_gates)
        decoder, gates = self.decoder, self.decoder.token_gates
        # Masks have a row an example: all its hypotheses drop the same units.
        mask, rows = (None, None) if self.masks is None else (self.masks.decoder, self._examples(len(tokens)))
        return project_tokens(decoder.embedding, gates.weight, gates.bias, tokens, mask, rows)

    def _examples(self, num_hypotheses: int) -> Tensor:
        """Return the example [R * W] of each of so many hypotheses."""
        examples = torch.arange(len(self.attention_bias), device=self.attention_bias.device)
        return examples.repeat_interleave(num_hypotheses // len(examples))

    def _look(self, hidden: Tensor) -> Live:
        gates, queries, addend = linear(hidden, self.product, self.product_bias).tensor_split(self.bounds, 1)
        queries = queries.reshape(len(self.attention_bias), -1, len(self.energy))  # [R, W, A]
        energies = self.keys.match(queries) @ self.energy
        weights = torch.softmax(energies + self.attention_bias[:, None], dim=2)
        seen = torch.bmm(weights, self.values).flatten(0, 1)
        context_gates, rest = seen.tensor_split(self.bounds[:1], dim=1)
        if self.projected:
            features = torch.tanh(addend + rest) if self.squashed else addend + rest
        else:
            # With a lifted memory `logits` adds what the context is worth.
            features = hidden if self.lifted is not None else torch.cat([hidden, rest], dim=1)
        if self.masks is not None:
            features = masked(features, self.masks.features, self._examples(len(features)))
            # The layer before the vocabulary, which was left out of the products above.
            features = self.decoder.output_layer.inputs(features)
        return Live(hidden, gates, context_gates, features, weights)


class Keys:
    """Keys [R, S, A] to be matched with the queries of many steps.

    σ(k + q) = 1 / (1 + e^-k · e^-q): with e^-k known, no step needs an exponential of R · W · S · A numbers. That is
    so only where no product can overflow; looking at it would hold a GPU up, which is quick enough as it is.
    """

    def __init__(self, keys: Tensor) -> None:
        self.keys, self.limit = keys, -math.inf
        self.inverse = keys
        if keys.device.type == "cpu" and keys.dtype in (torch.float32, torch.float64) and keys.numel():
            self.inverse = torch.exp(-keys)
            # e^-k · e^-q is at most e^(max|k| + max|q|); one less leaves room for rounding and for adding 1.
            self.limit = math.log(torch.finfo(keys.dtype).max) - 1 - float(keys.abs().max())

    def select(self, rows: Tensor) -> Keys:
        """Return the keys of some examples."""
        some = copy(self)
        some.keys, some.inverse = self.keys[rows], self.inverse[rows]
        return some

    def match(self, queries: Tensor) -> Tensor:
        """Return σ(k + q), [R, W, S, A], for queries [R, W, A]."""
        # The limit first: it is −∞ off the CPU, where asking for the maximum would wait for the device.
        if self.limit > 0 and float(queries.abs().max()) < self.limit:
            one = queries.new_ones(())
            return torch.addcmul(one, self.inverse[:, None], torch.exp(-queries)[:, :, None]).reciprocal_()
        return torch.sigmoid(self.keys[:, None] + queries[:, :, None])


def _inner_layer(output_layer: LinearOutputLayer | TiedOutputLayer) -> tuple[Tensor | None, Tensor]:
    """Return the matrix U [F, H + C] of the layer before that of the vocabulary, or None, and its bias, if any."""
    none = output_layer.bias[:0]
    if isinstance(output_layer, TiedOutputLayer):
        return output_layer.projection.weight, none
    if isinstance(output_layer, ProjectedOutputLayer):
        return output_layer.projection.weight, output_layer.projection.bias
    return None, none
