"""What a critic knows of the tokens it chooses between: its values beside the true ones.

Actor-critic follows nothing but differences between the values of the tokens of one step. The true value of a token
after a prefix is the mean return of continuations by the actor; it is measured for the actor's likeliest tokens, at
four positions of each of its samples. With w(a) the actor's probabilities of these tokens and values q(a),

    advantage(a) = q(a) − Σ_a w(a) q(a),   spread² = mean over prefixes of Σ_a w(a) advantage(a)²

The true spread and the correlation are freed of the noise of the continuations. The error of the correlation is that of
the jackknife: each example, with all its prefixes, is left out once.

Shapes: E examples, B prefixes, A tokens, K continuations, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.score import Score
from seqcritic.data.corruption import derive_seed
from seqcritic.decoding.sampling import sample
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.lookahead import all_values
from seqcritic.methods.rollout import prefix_scores, sample_maximum_lengths
from seqcritic.tensors import rows as all_rows

NUM_EXAMPLES = 64
TOKENS = 6
CONTINUATIONS = 16
POSITIONS = (0.0, 0.25, 0.5, 0.75)  # of a reference
UNLIKELY = 0.01
PREFIXES_AT_ONCE = 16

ValuesOf: TypeAlias = Callable[[Batch, Tensor, Tensor, Tensor], Tensor]
"""From B examples, their samples [B, T], steps [B] and tokens [B, A] to values [B, A] of the tokens at these steps."""


def compare_values(returns: Tensor, values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the squares of true and of the critic's advantages and their products [B].

    From returns [B, A, K], values and weights [B, A]. The noise of a mean of K returns makes the squares of true
    advantages too large by Σ_a w(a) (1 − w(a)) σ²(a) / K.
    """
    # Without it a critic would look worse the fewer continuations there are to compare it with.
    noise = (weights * (1 - weights) * returns.var(dim=2)).sum(dim=1) / returns.shape[2]
    true, own = advantages(returns.mean(dim=2), weights), advantages(values, weights)
    squares = (weights * true.square()).sum(dim=1) - noise
    return squares, (weights * own.square()).sum(dim=1), (weights * true * own).sum(dim=1)


def advantages(values: Tensor, weights: Tensor) -> Tensor:
    """Return values [B, A] minus their mean by weights [B, A] that sum to 1."""
    return values - (weights * values).sum(dim=1, keepdim=True)


class TokenValues(NamedTuple):
    """What is measured: how far true values and the critic's lie apart, and how they go together."""

    prefixes: int
    true_spread: float
    critic_spread: float
    correlation: float  # NaN where one of them has no spread
    unlikely_favourites: float  # fraction of prefixes in which the token of the highest value is an unlikely one
    correlation_error: float  # its standard error


def token_correlation(actor: Actor, critic: Critic, score: Score, batches: Sequence[Batch], seed: int) -> float:
    """Return the correlation on some validation examples, the same ones each time; 0 where there is none."""
    few, left = [], NUM_EXAMPLES
    for batch in batches:
        few.append(batch.part(0, min(left, len(batch))).to(actor.device))
        left -= len(few[-1])
        if left <= 0:
            break
    # A seed of its own: the figure of one evaluation can be compared with the next, and training draws what it would.
    generator = torch.Generator().manual_seed(derive_seed(seed, "token values"))
    found = measure_token_values(actor, critic, score, few, generator).correlation
    return found if math.isfinite(found) else 0.0


@torch.no_grad()
def measure_token_values(
    actor: Actor, critic: Critic | ValuesOf, score: Score, batches: Sequence[Batch], generator: torch.Generator
) -> TokenValues:
    """Measure the critic's values on one sample of every example.

    What is no critic values only the tokens that it is asked for: it has no favourites among all.
    """
    found, sums = [], []
    for batch in batches:
        parts = list(_measure_batch(actor, critic, score, batch, generator))
        sums.append(_sums_by_example(parts, len(batch)))
        found += parts
    true, own, products, unlikely = (torch.cat(parts).mean().item() for parts in list(zip(*found, strict=True))[1:])
    return TokenValues(
        prefixes=sum(len(part[0]) for part in found),
        # A square that is freed of noise may by chance be less than nothing.
        true_spread=max(true, 0.0) ** 0.5,
        critic_spread=own**0.5,
        correlation=products / (true * own) ** 0.5 if true > 0 and own > 0 else float("nan"),
        unlikely_favourites=unlikely,
        correlation_error=_jackknife_error(torch.cat(sums)),
    )


def _sums_by_example(parts: Sequence[tuple[Tensor, ...]], num_examples: int) -> Tensor:
    """Return the sums [E, 3] of squares and products over the prefixes of each example."""
    rows = torch.cat([part[0] for part in parts])
    figures = torch.stack([torch.cat([part[position] for part in parts]) for position in (1, 2, 3)], dim=1)
    return figures.new_zeros(num_examples, 3).index_add(0, rows, figures)


def _jackknife_error(sums: Tensor) -> float:
    """Return the standard error of the correlation from each example's squares and products [E, 3]."""
    # By examples, not prefixes: prefixes of one example are not independent.
    true, own, products = (sums.sum(dim=0) - sums).unbind(1)  # with one example left out each
    found = products / (true * own).sqrt()
    count = len(found)
    spread = (found - found.mean()).square().sum().item()
    return math.sqrt((count - 1) / count * spread) if math.isfinite(spread) else float("nan")


def _measure_batch(
    actor: Actor, critic: Critic | ValuesOf, score: Score, batch: Batch, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
    """Yield for some prefixes: their examples, what `compare_values` finds, and whether the favourite is unlikely."""
    memory = actor.encode(batch.sources, batch.source_mask)
    drawn = sample(actor, memory, sample_maximum_lengths(actor, batch), generator)
    logits, states = actor.score(memory, drawn.tokens)
    probabilities = torch.softmax(logits, dim=2)
    values = None
    if isinstance(critic, Critic):
        columns = choose_columns(critic, actor.special, batch, probabilities[:, 0])
        values = all_values(critic, score, actor.special, batch, drawn.tokens, drawn.mask, states, columns)
    lengths = actor.special.lengths(batch.references, batch.reference_mask)
    for position in POSITIONS:
        # By the reference's length, not the sample's: a sample that is over by then has no prefix there.
        steps = (position * lengths).long().clamp(max=drawn.mask.shape[1] - 1)
        alive = drawn.mask.gather(1, steps[:, None]).flatten().nonzero().flatten()
        # Every prefix becomes tokens times continuations rows: a few at a time fit into memory.
        for rows in torch.split(alive, PREFIXES_AT_ONCE):
            chances = probabilities[rows, steps[rows]]  # [B, V]
            weights, tokens = chances.topk(min(TOKENS, chances.shape[1]), dim=1)
            # Over the tokens compared alone: a mean that the unlikely rest would shift cannot be measured.
            weights = (weights / weights.sum(dim=1, keepdim=True)).double()
            part, known = batch.select(rows), all_rows.select(memory, rows)
            returns = _continue(actor, score, part, known, drawn.tokens[rows], steps[rows], tokens, generator)
            if values is not None:
                of_all = values[rows, steps[rows]]  # [B, V]
                own = of_all.gather(1, tokens)
                unlikely = (chances.gather(1, of_all.argmax(dim=1, keepdim=True)).flatten() < UNLIKELY).double()
            else:
                own = critic(part, drawn.tokens[rows], steps[rows], tokens)
                unlikely = torch.full((len(rows),), torch.nan, dtype=torch.float64, device=rows.device)
            yield rows, *compare_values(returns.double(), own.double(), weights), unlikely


def _continue(
    actor: Actor,
    score: Score,
    batch: Batch,
    memory: Memory,
    samples: Tensor,
    steps: Tensor,
    tokens: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """Return the returns [B, A, K], from a step on, of samples cut at steps [B], with each of tokens [B, A] there."""
    repeats = tokens.shape[1] * CONTINUATIONS
    many, ends = batch.repeat(repeats), steps.repeat_interleave(repeats)[:, None]
    given = samples.repeat_interleave(repeats, dim=0)
    # What the sample had behind this step is not given: `sample` takes over no more than the first steps + 1.
    given = given.scatter(1, ends, tokens.flatten().repeat_interleave(CONTINUATIONS)[:, None])
    special = actor.special
    maximum_lengths = sample_maximum_lengths(actor, many)
    others = sample(actor, all_rows.repeat(memory, repeats), maximum_lengths, generator, (given, ends[:, 0] + 1))
    scores = prefix_scores(score, special, others.tokens, others.mask, many)
    # What the whole scores less what stood before the token: all that was earned from it on.
    return (scores[:, -1] - scores.gather(1, ends)[:, 0]).view(*tokens.shape, CONTINUATIONS)
