"""Additive soft attention (Bahdanau et al. 2015): equations 5 and 6 of the paper.

    e_j = v · tanh(W s + U h_j + b),   α = softmax(e),   c = Σ_j α_j h_j

Computed as 2v · σ(2z), which differs from v · tanh(z) by the constant Σv that the softmax drops: on a CPU the
logistic function costs a third of tanh.

Shapes: B examples, S positions of the memory, C their size, A attention size, H state size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqcritic.models.gru.dropout import Masks
from seqcritic.models.products import linear


class EncoderMemory(NamedTuple):
    """An encoded sequence, ready to be attended to."""

    annotations: Tensor  # [B, S, C]
    keys: Tensor  # [B, S, A], 2(U h + b)
    attention_bias: Tensor  # [B, S], 0 inside and -inf on padding
    masks: Masks | None = None  # what the decoder drops of each row; None: nothing


class Attention(nn.Module):
    """The weights of additive attention; the query product W s is done by the decoder with its own."""

    def __init__(self, state_size: int, memory_size: int, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(state_size, size, bias=False)
        self.key = nn.Linear(memory_size, size)
        self.energy = nn.Linear(size, 1, bias=False)

    def prepare_memory(self, annotations: Tensor, mask: Tensor, masks: Masks | None = None) -> EncoderMemory:
        """Prepare annotations [B, S, C] with mask [B, S] for attention; `masks`: what is dropped of each row."""
        attention_bias = torch.zeros(mask.shape, dtype=annotations.dtype, device=annotations.device)
        keys = linear(annotations, self.key.weight, self.key.bias)
        return EncoderMemory(annotations, 2 * keys, attention_bias.masked_fill(~mask, -torch.inf), masks)

    def context(self, doubled_query: Tensor, energy: Tensor, memory: EncoderMemory) -> tuple[Tensor, Tensor]:
        """Return the context [B, C] and weights [B, S] for a query 2Ws [B, A]; `energy` is 2v [A]."""
        energies = torch.sigmoid(memory.keys + doubled_query[:, None, :]) @ energy + memory.attention_bias
        weights = torch.softmax(energies, dim=1)
        return torch.bmm(weights[:, None, :], memory.annotations)[:, 0], weights

    def weights(self, states: Tensor, memory: EncoderMemory) -> Tensor:
        """Return the weights [B, T, S] that states [B, T, H] give to the positions of a memory, to be looked at."""
        energy = 2 * self.energy.weight[0]
        queries = 2 * self.query(states)
        # One step after the other: all at once would hold B · T · S · A numbers.
        return torch.stack([self.context(query, energy, memory)[1] for query in queries.unbind(dim=1)], dim=1)
