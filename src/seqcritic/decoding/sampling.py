"""Drawing predictions from an actor, one token at a time.

Shapes: B examples, S source tokens, T steps, V vocabulary, H state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.draws import choose, draw_numbers
from seqcritic.errors import NonFiniteError
from seqcritic.tensors import rows as all_rows
from seqcritic.tensors.packed import Packed


@dataclass(frozen=True)
class Sample:
    """Sampled predictions with what the sampling actor knew at each step.

    Where the mask is False, tokens are padding and all else is 0.
    """

    tokens: Tensor  # [B, T] int64
    mask: Tensor  # [B, T] bool, True up to and including the first end token or the maximum length
    probabilities: Packed  # [N, V], p(· | Ŷ_1..t-1)
    states: Tensor  # [B, T, H], the view of the state that produced token t
    entropies: Tensor  # [B, T], of the distributions
    token_log_probabilities: Tensor  # [B, T], log p(ŷ_t | Ŷ_1..t-1)


@torch.no_grad()
def sample(
    actor: Actor,
    memory: Memory,
    maximum_lengths: Tensor,
    generator: torch.Generator,
    given: tuple[Tensor, Tensor] | None = None,
) -> Sample:
    """Sample until the end token or until a row has maximum_lengths [B] tokens, its end token counted.

    A row's tokens depend on its own random numbers only, not on when the others end. Rows leave the batch as they end.
    `given`: tokens [B, U] and how many of them, [B], each row begins with; their numbers are drawn all the same.
    """
    state = actor.start(memory)
    # All before the loop: the generator has moved by one draw, however long the samples grow.
    numbers = draw_numbers(generator, int(maximum_lengths.max()), len(maximum_lengths)).to(
        maximum_lengths.device
    )  # [T, B]
    rows = torch.arange(len(maximum_lengths), device=maximum_lengths.device)
    columns: list[tuple[Tensor, ...]] = []
    for step in range(len(numbers)):
        logits = actor.logits(state)
        distribution = torch.softmax(logits, dim=1)
        drawn = choose(distribution, numbers[step, rows])
        # H = log Z − Σ_a p_a logit_a: no tensor of log-probabilities is made for the entropy.
        normalisers = _normalisers(logits, distribution, drawn)
        entropies = normalisers - torch.linalg.vecdot(distribution, logits)
        if not bool(torch.isfinite(entropies).all()):
            raise NonFiniteError("a probability of the sampling actor is not finite")
        # After the draw, so that a row's later numbers do not depend on how much of it was given.
        if given is not None and step < given[0].shape[1]:
            drawn = torch.where(given[1][rows] > step, given[0][rows, step], drawn)
        token_log_probabilities = logits.gather(1, drawn[:, None])[:, 0] - normalisers
        # All that the actor knew is kept: what scores the sample later need not run this loop again.
        columns.append((rows, drawn, distribution, actor.view(state), entropies, token_log_probabilities))
        going = ~actor.special.is_end(drawn) & (maximum_lengths[rows] > step + 1)
        if not bool(going.any()):
            break
        if not bool(going.all()):
            rows, drawn, memory, state = all_rows.select((rows, drawn, memory, state), going)
        state = actor.step(memory, state, drawn)
    return collect(columns, len(maximum_lengths), actor.special.padding)


def _normalisers(logits: Tensor, probabilities: Tensor, drawn: Tensor) -> Tensor:
    """Return log Z = logit(a) − log p(a), [B], from a drawn token, whose p is not 0."""
    position = drawn[:, None]
    return (logits.gather(1, position) - probabilities.gather(1, position).log())[:, 0]


def collect(columns: list[tuple[Tensor, ...]], batch: int, padding: int) -> Sample:
    """Return the sample made of its steps: of each the rows still alive, and for these the fields of a sample."""
    rows, tokens, distributions, *others = (list(field) for field in zip(*columns, strict=True))
    # Steps have fewer and fewer rows; by these positions they become one packed tensor without a padded copy.
    positions = torch.cat([alive * len(columns) + step for step, alive in enumerate(rows)])
    probabilities = Packed(torch.cat(distributions), positions, (batch, len(columns)))
    padded = [probabilities.spread(torch.cat(field)) for field in (tokens, *others)]
    mask = probabilities.spread(torch.ones_like(positions, dtype=torch.bool))
    return Sample(padded[0].masked_fill(~mask, padding), mask, probabilities, *padded[1:])


@torch.no_grad()
def greedy(actor: Actor, sources: Tensor, source_mask: Tensor) -> Tensor:
    """Return the most probable token at each step, [B, T], padded after the end; see `decode_greedily`."""
    return decode_greedily(actor, actor.encode(sources, source_mask), actor.limits.of(source_mask))


@torch.no_grad()
def decode_greedily(actor: Actor, memory: Memory, maximum_lengths: Tensor) -> Tensor:
    """Return the most probable token at each step, [B, T], padded after the end, of encoded sources.

    A row that never ends is cut at maximum_lengths [B] tokens; rows leave the batch as they finish.
    """
    return _decode(actor, memory, maximum_lengths, lambda logits, rows, step: logits.argmax(dim=1))


@torch.no_grad()
def draw_tokens(actor: Actor, memory: Memory, maximum_lengths: Tensor, numbers: Tensor) -> Tensor:
    """Return samples [B, T], padded after the end, that random numbers [T, B] choose; nothing else is kept of them."""

    def pick(logits: Tensor, rows: Tensor, step: int) -> Tensor:
        distribution = torch.softmax(logits, dim=1)
        # A logit that is infinite or no number makes all probabilities of its row so: the first of each tells.
        if not bool(torch.isfinite(distribution[:, 0]).all()):
            raise NonFiniteError("a probability of the sampling actor is not finite")
        return choose(distribution, numbers[step, rows])

    return _decode(actor, memory, maximum_lengths, pick)


def _decode(
    actor: Actor, memory: Memory, maximum_lengths: Tensor, pick: Callable[[Tensor, Tensor, int], Tensor]
) -> Tensor:
    """Return the tokens [B, T] that are picked from the logits of the rows still alive, padded after the end."""
    state = actor.start(memory)
    output = torch.full(
        (len(maximum_lengths), int(maximum_lengths.max())),
        actor.special.padding,
        dtype=torch.int64,
        device=maximum_lengths.device,
    )
    rows = torch.arange(len(maximum_lengths), device=maximum_lengths.device)
    for step in range(output.shape[1]):
        chosen = pick(actor.logits(state), rows, step)
        output[rows, step] = chosen
        going = ~actor.special.is_end(chosen) & (maximum_lengths[rows] > step + 1)
        if not bool(going.any()):
            break
        if not bool(going.all()):
            rows, chosen, memory, state = all_rows.select((rows, chosen, memory, state), going)
        state = actor.step(memory, state, chosen)
    return output
