"""The most probable expansions of live hypotheses, for beam search.

Equal log-probabilities rank by the earlier hypothesis, then by the higher logit, then by the lower token.

Shapes: R examples, W live hypotheses of each, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.errors import NonFiniteError

BLOCK = 64


def expand_top_k(logits: Tensor, log_probs: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, parent and token of the most probable expansions, each [R, width] or all there are.

    Logits are [R * W, V]. The log-probabilities [R, W] are float64: rounding must not make unequal sums equal.
    """
    steps = torch.log_softmax(logits, dim=1)
    # By blocks width + 1 of them are looked through: with no more than that there is nothing to spare.
    if width >= log_probs.shape[1] * (logits.shape[1] // BLOCK):
        best, parents, tokens = _search_all(logits, steps, log_probs, width)
    else:
        best, parents, tokens, tied = _search_blocks(steps, log_probs, width)
        if bool(tied.any()):
            some, theirs = (field.view(*log_probs.shape, -1)[tied].flatten(0, 1) for field in (logits, steps))
            best[tied], parents[tied], tokens[tied] = _search_all(some, theirs, log_probs[tied], width)
    if bool(torch.isnan(best).any()):
        raise NonFiniteError("a log-probability of the searching actor is not a number")
    return best, parents, tokens


def _search_all(logits: Tensor, steps: Tensor, log_probs: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Only the `width` likeliest tokens of a hypothesis count; they are chosen by their logits, as in greedy search."""
    likeliest = _highest(logits, width)  # [R * W, K]
    sums = (log_probs[:, :, None] + steps.gather(1, likeliest).view(*log_probs.shape, -1)).flatten(1)  # [R, W * K]
    best, positions = sums.sort(dim=1, descending=True, stable=True)
    best, positions = best[:, :width], positions[:, :width]
    return best, positions // likeliest.shape[1], likeliest.view(len(sums), -1).gather(1, positions)


def _search_blocks(steps: Tensor, log_probs: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same from log-probabilities [R * W, V], and whether [R] two of the best are equal, their order open.

    The K + 1 best of all lie in the K + 1 blocks of tokens whose maxima are highest: only these are looked through.
    """
    num_tokens = steps.shape[1]
    whole = num_tokens // BLOCK
    maxima = steps[:, : whole * BLOCK].view(len(steps), whole, BLOCK).amax(dim=2)
    if num_tokens % BLOCK:
        maxima = torch.cat([maxima, steps[:, whole * BLOCK :].amax(dim=1, keepdim=True)], dim=1)
    num_blocks = maxima.shape[1]
    bounds = (log_probs[:, :, None] + maxima.view(*log_probs.shape, num_blocks)).flatten(1)
    blocks = bounds.topk(width + 1, dim=1, sorted=False).indices  # [R, K]
    parents = blocks // num_blocks
    tokens = (blocks % num_blocks * BLOCK)[:, :, None] + torch.arange(BLOCK, device=steps.device)  # [R, K, BLOCK]
    outside = tokens >= num_tokens
    positions = (torch.arange(len(blocks), device=steps.device)[:, None] * log_probs.shape[1] + parents) * num_tokens
    values = steps.view(-1)[(positions[:, :, None] + tokens).masked_fill_(outside, 0)].masked_fill_(outside, -torch.inf)
    sums = (log_probs.gather(1, parents)[:, :, None] + values).flatten(1)  # [R, K * BLOCK]
    best, chosen = sums.topk(width + 1, dim=1)
    tied = (best[:, 1:] == best[:, :-1]).any(dim=1)
    chosen = chosen[:, :width]
    return best[:, :width], parents.gather(1, chosen // BLOCK), tokens.flatten(1).gather(1, chosen), tied


def _highest(values: Tensor, count: int) -> Tensor:
    """Return the positions [N, count], or all V, of the highest values of [N, V] falling, equals by position."""
    count = min(count, values.shape[1])
    # topk leaves open which of equal values it returns; one value more shows where that matters.
    highest, positions = values.topk(min(count + 1, values.shape[1]), dim=1)
    tied = (highest[:, count:] == highest[:, count - 1 : count]).any(dim=1)
    if bool(tied.any()):
        positions[tied, :count] = values[tied].sort(dim=1, descending=True, stable=True).indices[:, :count]
    # By position first: the stable sort by value then leaves equals in the order of their tokens.
    positions = positions[:, :count].sort(dim=1).values
    return positions.gather(1, values.gather(1, positions).sort(dim=1, descending=True, stable=True).indices)
