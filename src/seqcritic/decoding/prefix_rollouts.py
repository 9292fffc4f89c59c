"""Further samples that share a prefix with a sample: every prefix is continued several times by the same actor.

Shapes: B sampled rows, T steps, M continuations of each prefix, R prefixes continued times M.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory, State
from seqcritic.draws import choose, draw_numbers, fork
from seqcritic.errors import NonFiniteError
from seqcritic.tensors import rows as all_rows


class Prefixes(NamedTuple):
    """Prefixes to be continued, and what they are continued by."""

    state: State  # after the prefix
    rows: Tensor  # [R], the sampled row
    positions: Tensor  # [R], the last position taken over from it
    numbers: Tensor  # [R, T], random, of the tokens that follow


class PrefixRollouts(NamedTuple):
    """Whole sequences [R, T], each the prefix of a sampled row up to and including its position and what was drawn."""

    rows: Tensor  # [R], the sampled row
    positions: Tensor  # [R], the last position taken over from it
    tokens: Tensor  # [R, T], padded after the end
    entropies: Tensor  # [R], the sum of the actor's entropies from the first drawn token on


@torch.no_grad()
def roll_out_prefixes(
    actor: Actor,
    memory: Memory,
    tokens: Tensor,
    mask: Tensor,
    maximum_lengths: Tensor,
    count: int,
    generator: torch.Generator,
) -> PrefixRollouts:
    """Continue each prefix of tokens [B, T] that something follows `count` times, up to maximum_lengths [B] tokens in
    all.

    The random numbers of a row are its own, whatever the others are and however long they grow.
    """
    # A generator of its own: the sample itself is the same with and without these further ones.
    own = fork(generator)
    width = int(maximum_lengths.max())
    prefixes = []
    state = actor.start(memory)
    dtype = actor.view(state).dtype
    for position in range(tokens.shape[1] - 1):
        state = actor.step(memory, state, tokens[:, position])
        going = mask[:, position + 1].nonzero()[:, 0].repeat_interleave(count)
        drawn = draw_numbers(own, width, len(tokens) * count).to(tokens.device)
        numbers = drawn[:, mask[:, position + 1].repeat_interleave(count)]
        prefixes.append(Prefixes(all_rows.select(state, going), going, torch.full_like(going, position), numbers.T))
    if not prefixes:
        nothing = tokens.new_empty(0)
        return PrefixRollouts(nothing, nothing, tokens[:0], nothing.to(dtype))
    # States that grow with the prefix cannot stand side by side: their positions are then continued one after the
    # other.
    groups = [all_rows.cat(prefixes)] if actor.fixed_size_state else prefixes
    return all_rows.cat([_draw(actor, memory, group, tokens, maximum_lengths, dtype) for group in groups])


def _draw(
    actor: Actor, memory: Memory, prefixes: Prefixes, tokens: Tensor, maximum_lengths: Tensor, dtype: torch.dtype
) -> PrefixRollouts:
    """Draw on from the states after the prefixes; what has ended leaves the batch."""
    state, rows, positions, numbers = prefixes
    padding = actor.special.padding
    steps = torch.arange(int(maximum_lengths.max()), device=tokens.device)
    padded = torch.nn.functional.pad(tokens, (0, len(steps) - tokens.shape[1]), value=padding)
    output = torch.where(steps <= positions[:, None], padded[rows], padding)
    entropies = torch.zeros(len(rows), dtype=dtype, device=rows.device)
    memory = all_rows.select(memory, rows)
    active = torch.arange(len(rows), device=rows.device)
    for step in range(len(steps)):
        distribution = torch.softmax(actor.logits(state), dim=1)
        if not bool(torch.isfinite(distribution).all()):
            raise NonFiniteError("a probability of the sampling actor is not finite")
        chosen = choose(distribution, numbers[active, step])
        position = positions[active] + 1 + step
        output[active, position] = chosen
        entropies[active] += torch.special.entr(distribution).sum(dim=1)
        going = ~actor.special.is_end(chosen) & (position + 1 < maximum_lengths[rows[active]])
        if not bool(going.any()):
            break
        active, chosen, memory, state = all_rows.select((active, chosen, memory, state), going)
        state = actor.step(memory, state, chosen)
    return PrefixRollouts(rows, positions, output, entropies)
