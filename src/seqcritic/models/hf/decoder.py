"""One step of a transformer's decoder, by its equations over the weights of a library's module.

The library's own step does the same sums, but makes masks, caches and output records anew for every token: at small
sizes that takes longer than the sums. Here nothing is recorded for gradients and nothing is dropped: it is for drawing
and searching. With the tokens' vectors E, their positions P and a norm N in each of three blocks of a layer,

    h ← N_in(E[y] · s + P[t])
    h ← h + f(N(h))  where norms come first (T5, mBART, …);  h ← N(h + f(h))  where they come last (BART, Marian)

for f in: attention to the tokens before (queries, keys and values by one product), attention to the source, whose keys
and values are known, and W₂ a(W₁ h), in gated layers W₂ (a(W₁ h) · W₃ h). `architectures.py` reads the weights.

Who attends to what is left to an `Attention`: rows that each have a cache of their own, or hypotheses of a beam.

Shapes: N rows, H hidden size, D = heads · size of queries, keys and values, L tokens before, S source positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding, layer_norm, linear, rms_norm, scaled_dot_product_attention

KeysAndValues = tuple[tuple[Tensor, Tensor], ...]  # [N, heads, L, size] each, one pair a layer


LARGE = 1 << 18  # numbers of a matrix for which the way to oneDNN and back is worth it


class Linear(NamedTuple):
    """x W' + b."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return [N, outputs] for [N, inputs]."""
        if self.weight.is_mkldnn:
            return linear(inputs.to_mkldnn(), self.weight, self.bias).to_dense()
        return linear(inputs, self.weight, self.bias)

    def prepared(self) -> Linear:
        """Return the same layer, a large one for oneDNN, whose products agree up to rounding, where that is faster."""
        usual = self.weight.device.type != "cpu" or self.weight.dtype != torch.float32
        if usual or self.weight.numel() < LARGE or not mkl_leaves_half_unused():
            return self
        bias = self.weight.new_zeros(len(self.weight)) if self.bias is None else self.bias
        return Linear(self.weight.contiguous().to_mkldnn(), bias.contiguous().to_mkldnn())


@cache
def mkl_leaves_half_unused() -> bool:
    """Whether PyTorch's usual products use half the processor's width, as MKL does on AMD's with AVX-512.

    A property of the machine, not of a trial: a resumed run must compute with the same products.
    """
    known = Path("/proc/cpuinfo")
    if not (torch.backends.mkldnn.is_available() and known.is_file()):  # type: ignore[no-untyped-call]
        return False
    return torch.backends.cpu.get_cpu_capability() == "AVX512" and "AuthenticAMD" in known.read_text(encoding="utf-8")


class Norm(NamedTuple):
    """Layer normalisation; without a mean taken off, that of T5."""

    weight: Tensor
    bias: Tensor | None
    epsilon: float
    centred: bool = True

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return [N, H] for [N, H]."""
        size = inputs.shape[1:]
        if self.centred:
            return layer_norm(inputs, size, self.weight, self.bias, self.epsilon)
        return rms_norm(inputs, size, self.weight, self.epsilon)


class Layer(NamedTuple):
    """The weights of one layer; `own` makes queries, keys and values [N, 3 D] at once."""

    norms: tuple[Norm, Norm, Norm]
    own: Linear
    own_out: Linear
    query: Linear
    cross_out: Linear
    widen: Linear
    gate: Linear | None
    narrow: Linear
    activation: Callable[[Tensor], Tensor]


class Attention(Protocol):
    """Who attends to what, in one step of a layer; all arguments and results are [N, D]."""

    def own(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return what the rows see of the tokens before them, and of their own, whose keys and values are new."""
        ...

    def cross(self, layer: int, queries: Tensor) -> Tensor:
        """Return what the rows see of their sources."""
        ...


@dataclass(frozen=True)
class Decoder:
    """A stack of layers, and the head above it."""

    vectors: Tensor  # [V, H], of the tokens
    scale: float  # of the vectors
    positions: Tensor | None  # [P, H]
    entry_norm: Norm | None
    layers: tuple[Layer, ...]
    exit_norm: Norm | None
    norm_first: bool
    num_heads: int
    attention_scale: float
    distance_bias: Callable[[int], Tensor] | None  # [heads, L] that the last of L tokens adds for each of them
    head: Linear
    head_scale: float  # of what the head reads

    def read(self, tokens: Tensor, position: int, attention: Attention) -> Tensor:
        """Return the hidden states [N, H] after tokens [N], all of which stand at one position."""
        hidden = embedding(tokens, self.vectors)
        if self.scale != 1:
            hidden = hidden * self.scale
        if self.positions is not None:
            hidden = hidden + self.positions[position]
        if self.entry_norm is not None:
            hidden = self.entry_norm(hidden)
        for number, layer in enumerate(self.layers):
            # The order of the blocks is that of `Layer.norms`.
            for norm, block in zip(layer.norms, (_look_back, _look_across, _think), strict=True):
                if self.norm_first:
                    hidden = hidden + block(layer, number, norm(hidden), attention)
                else:
                    hidden = norm(hidden + block(layer, number, hidden, attention))
        return hidden if self.exit_norm is None else self.exit_norm(hidden)

    def say(self, hidden: Tensor) -> Tensor:
        """Return logits [N, V] of hidden states [N, H]."""
        return self.head(hidden if self.head_scale == 1 else hidden * self.head_scale)


def _look_back(layer: Layer, number: int, hidden: Tensor, attention: Attention) -> Tensor:
    return layer.own_out(attention.own(number, *layer.own(hidden).chunk(3, dim=1)))


def _look_across(layer: Layer, number: int, hidden: Tensor, attention: Attention) -> Tensor:
    return layer.cross_out(attention.cross(number, layer.query(hidden)))


def _think(layer: Layer, number: int, hidden: Tensor, attention: Attention) -> Tensor:
    wide = layer.activation(layer.widen(hidden))
    return layer.narrow(wide if layer.gate is None else wide * layer.gate(hidden))


class RowsAttention:
    """Rows that each have a cache of their own; the caches given stay as they are, `grown` has one token more."""

    def __init__(self, decoder: Decoder, cache: KeysAndValues, cross: KeysAndValues, hidden_sources: Tensor) -> None:
        """Take the caches of tokens and sources, and what is added to the weights of sources, [N, 1, 1, S]."""
        self._decoder, self._cache, self._cross, self._hidden = decoder, cache, cross, hidden_sources
        self._bias: Tensor | None = None
        if decoder.distance_bias is not None:
            self._bias = decoder.distance_bias(cache[0][0].shape[2] + 1)[None, :, None]
        self.grown: list[tuple[Tensor, Tensor]] = []

    def own(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return what each row sees of its own tokens."""
        before = self._cache[layer]
        # New tensors, not room in the old: a state that was stepped from stays valid, as the contract says.
        pair = (torch.cat([before[0], self._split(keys)], dim=2), torch.cat([before[1], self._split(values)], dim=2))
        self.grown.append(pair)
        return self._attend(queries, pair, self._bias)

    def cross(self, layer: int, queries: Tensor) -> Tensor:
        """Return what each row sees of its own source."""
        # No bias of distances: between two sequences there are none.
        return self._attend(queries, self._cross[layer], self._hidden)

    def _split(self, rows: Tensor) -> Tensor:
        return rows.view(len(rows), self._decoder.num_heads, 1, -1)

    def _attend(self, queries: Tensor, pair: tuple[Tensor, Tensor], added: Tensor | None) -> Tensor:
        seen = scaled_dot_product_attention(self._split(queries), *pair, added, scale=self._decoder.attention_scale)
        return seen.view(len(queries), -1)


def hide(mask: Tensor, like: Tensor) -> Tensor:
    """Return what is added to attention so that nothing is seen where a mask is False: 0 or −∞, typed as `like`."""
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(~mask, -torch.inf)
