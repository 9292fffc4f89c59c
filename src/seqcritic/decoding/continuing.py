"""Further samples that share a prefix with a sample: every prefix is continued several times by the same actor.

Shapes: B sampled rows, T steps, M continuations of each prefix, R prefixes continued times M.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.data.vocabulary import END
from seqcritic.draws import choose, draw_numbers, fork
from seqcritic.errors import NonFiniteError
from seqcritic.models.actor import Actor
from seqcritic.models.attention import Memory
from seqcritic.models.decoder import State


@dataclass(frozen=True)
class Continuations:
    """Whole sequences [R, T], each the prefix of a sampled row up to and including its place and what was drawn."""

    rows: Tensor  # [R], the sampled row
    places: Tensor  # [R], the last place taken over from it
    tokens: Tensor  # [R, T], end tokens after the end
    entropies: Tensor  # [R], the sum of the actor's entropies from the first drawn token on


@torch.no_grad()
def continue_prefixes(
    actor: Actor, memory: Memory, tokens: Tensor, mask: Tensor, caps: Tensor, count: int, generator: torch.Generator
) -> Continuations:
    """Continue each prefix of tokens [B, T] that something follows `count` times, up to caps [B] tokens in all.

    The random numbers of a row are its own, whatever the others are and however long they grow.
    """
    own = fork(generator)
    width = int(caps.max())
    states, numbers, rows, places = [], [], [], []
    state = actor.start(memory)
    for place in range(tokens.shape[1] - 1):
        state = actor.step(memory, state, tokens[:, place])
        going = mask[:, place + 1].nonzero()[:, 0].repeat_interleave(count)
        drawn = draw_numbers(own, width, len(tokens) * count).to(tokens.device)
        numbers.append(drawn[:, mask[:, place + 1].repeat_interleave(count)])
        states.append(state.select(going))
        rows.append(going)
        places.append(torch.full_like(going, place))
    if not rows:
        nothing = tokens.new_empty(0)
        return Continuations(nothing, nothing, tokens[:0], nothing.to(memory.keys.dtype))
    return _draw(
        actor, memory, State.stack(states), tokens, torch.cat(rows), torch.cat(places), caps, torch.cat(numbers, dim=1)
    )


def _draw(
    actor: Actor,
    memory: Memory,
    state: State,
    tokens: Tensor,
    rows: Tensor,
    places: Tensor,
    caps: Tensor,
    numbers: Tensor,
) -> Continuations:
    """Draw on from the states after the prefixes, with numbers [T, R]; what has ended leaves the batch."""
    steps = torch.arange(int(caps.max()), device=tokens.device)
    padded = torch.nn.functional.pad(tokens, (0, len(steps) - tokens.shape[1]), value=END)
    output = torch.where(steps <= places[:, None], padded[rows], END)
    entropies = torch.zeros(len(rows), dtype=state.hidden.dtype, device=rows.device)
    memory = memory.select(rows)
    active = torch.arange(len(rows), device=rows.device)
    for step in range(len(steps)):
        distribution = torch.softmax(actor.logits(state), dim=1)
        if not bool(torch.isfinite(distribution).all()):
            raise NonFiniteError("a probability of the sampling actor is not finite")
        chosen = choose(distribution, numbers[step, active])
        place = places[active] + 1 + step
        output[active, place] = chosen
        entropies[active] += torch.special.entr(distribution).sum(dim=1)
        going = (chosen != END) & (place + 1 < caps[rows[active]])
        if not bool(going.any()):
            break
        active, chosen, memory, state = active[going], chosen[going], memory.select(going), state.select(going)
        state = actor.step(memory, state, chosen)
    return Continuations(rows, places, output, entropies)
