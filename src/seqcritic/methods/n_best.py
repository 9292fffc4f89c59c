"""The n best predictions of a beam search as candidates of a loss.

Shapes: B examples, W hypotheses of each, T tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.decoding.beam import search_memory
from seqcritic.methods.rollout import sample_maximum_lengths


class NBest(NamedTuple):
    """The best hypotheses of each example, the best first; the last stands again where there are fewer."""

    tokens: Tensor  # [B, W, T], padded after the end
    mask: Tensor  # [B, W, T], True up to and including the end token or the maximum length
    log_probabilities: Tensor  # [B, W], as the search found them


def search_n_best(actor: Actor, memory: Memory, batch: Batch, width: int) -> NBest:
    """The hypotheses of a beam of `width`, at most as long as samples may be; no gradient reaches the memory."""
    special = actor.special
    found = search_memory(actor, memory, sample_maximum_lengths(actor, batch), width, num_best=width)
    full = [[*hypotheses, *[hypotheses[-1]] * (width - len(hypotheses))] for hypotheses in found]
    every = [hypothesis for hypotheses in full for hypothesis in hypotheses]
    emitted = [[*each.tokens, special.end[0]] if each.finished else each.tokens for each in every]
    num_steps = max(len(tokens) for tokens in emitted)
    rows = [[*tokens, *[special.padding] * (num_steps - len(tokens))] for tokens in emitted]
    device = batch.sources.device
    lengths = torch.tensor([len(tokens) for tokens in emitted], device=device)
    size = (len(batch), width)
    return NBest(
        torch.tensor(rows, device=device).view(*size, num_steps),
        (torch.arange(num_steps, device=device) < lengths[:, None]).view(*size, num_steps),
        torch.tensor([each.log_probability for each in every], dtype=torch.float64, device=device).view(size),
    )
