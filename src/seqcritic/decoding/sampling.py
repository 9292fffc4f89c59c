"""Drawing predictions from an actor, one token at a time.

Shapes: B examples, S source tokens, T steps, V vocabulary, H state.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.data.vocabulary import END
from seqcritic.decoding.draws import choose, draw_numbers
from seqcritic.errors import NonFiniteError
from seqcritic.models.actor import Actor
from seqcritic.models.attention import Memory


@dataclass(frozen=True)
class Sample:
    """Sampled predictions with what the sampling actor knew at each step."""

    tokens: Tensor  # [B, T] int64
    mask: Tensor  # [B, T] bool, True up to and including the first end token or the cap
    probabilities: Tensor  # [B, T, V], p(· | Ŷ_1..t-1)
    states: Tensor  # [B, T, H], the state that produced token t


@torch.no_grad()
def sample(actor: Actor, memory: Memory, caps: Tensor, generator: torch.Generator) -> Sample:
    """Sample until the end token or until a row has caps [B] tokens, its end token counted.

    A row's tokens depend on its own random numbers only, not on when the others end.
    """
    state = actor.start(memory)
    numbers = draw_numbers(generator, int(caps.max()), len(caps)).to(caps.device)  # [T, B]
    alive = torch.ones(len(caps), dtype=torch.bool, device=caps.device)
    tokens, masks, probabilities, states = [], [], [], []
    for step in range(len(numbers)):
        alive = alive & (caps > step)
        if not bool(alive.any()):
            break
        distribution = torch.softmax(actor.logits(state), dim=1)
        if not bool(torch.isfinite(distribution).all()):
            raise NonFiniteError("a probability of the sampling actor is not finite")
        drawn = torch.where(alive, choose(distribution, numbers[step]), END)
        tokens.append(drawn)
        masks.append(alive)
        probabilities.append(distribution)
        states.append(state.hidden)
        alive = alive & (drawn != END)
        state = actor.step(memory, state, drawn)
    return Sample(*(torch.stack(column, dim=1) for column in (tokens, masks, probabilities, states)))


def default_caps(source_mask: Tensor) -> Tensor:
    """Return how many tokens [B], the end token counted, a search may emit: twice the source's length plus ten."""
    return 2 * source_mask.sum(dim=1) + 10


@torch.no_grad()
def greedy(actor: Actor, sources: Tensor, source_mask: Tensor) -> Tensor:
    """Return the most probable token at each step, [B, T], end tokens as padding.

    A row that never ends is cut at its default cap; rows leave the batch as they finish.
    """
    memory = actor.encode(sources, source_mask)
    state = actor.start(memory)
    caps = default_caps(source_mask)
    output = torch.full((len(caps), int(caps.max())), END, dtype=torch.int64, device=sources.device)
    rows = torch.arange(len(caps), device=sources.device)
    for step in range(output.shape[1]):
        chosen = actor.logits(state).argmax(dim=1)
        output[rows, step] = chosen
        going = (chosen != END) & (caps[rows] > step + 1)
        if not bool(going.any()):
            break
        if not bool(going.all()):
            rows, chosen, memory, state = (
                rows[going],
                chosen[going],
                memory.select(going),
                state.select(going),
            )
        state = actor.step(memory, state, chosen)
    return output
