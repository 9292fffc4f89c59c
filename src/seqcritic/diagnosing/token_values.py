"""What a critic knows of the tokens it chooses between: its values beside the true ones.

Actor-critic follows nothing but differences between the values of the tokens of one step. In prefixes of samples of the
actor, at four places of each, the true value of each of its likeliest tokens is the mean return of continuations by the
actor. With w(a) the actor's probabilities of these tokens and values q(a),

    advantage(a) = q(a) − Σ_a w(a) q(a),   spread² = mean over prefixes of Σ_a w(a) advantage(a)²

The true spread and the correlation are freed of the noise of the continuations.

Shapes: B prefixes, A tokens, K continuations, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from seqcritic.contracts.actor import Memory
from seqcritic.contracts.batch import Batch
from seqcritic.decoding.sampling import sample
from seqcritic.diagnosing.estimators import Subject, sample_examples
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.outlook import all_values
from seqcritic.methods.rollout import prefix_scores, sample_limits
from seqcritic.report.diagnosis import TokenValues
from seqcritic.tensors import rows as all_rows

TOKENS = 6
CONTINUATIONS = 16
PLACES = (0.0, 0.25, 0.5, 0.75)  # of a reference
UNLIKELY = 0.01
PREFIXES_AT_ONCE = 16


def compare_values(returns: Tensor, values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the squares of true and of the critic's advantages and their products [B].

    From returns [B, A, K], values and weights [B, A]. The noise of a mean of K returns makes the squares of true
    advantages too large by Σ_a w(a) (1 − w(a)) σ²(a) / K.
    """
    noise = (weights * (1 - weights) * returns.var(dim=2)).sum(dim=1) / returns.shape[2]
    true, own = advantages(returns.mean(dim=2), weights), advantages(values, weights)
    squares = (weights * true.square()).sum(dim=1) - noise
    return squares, (weights * own.square()).sum(dim=1), (weights * true * own).sum(dim=1)


def advantages(values: Tensor, weights: Tensor) -> Tensor:
    """Return values [B, A] minus their mean by weights [B, A] that sum to 1."""
    return values - (weights * values).sum(dim=1, keepdim=True)


@torch.no_grad()
def measure_token_values(subject: Subject, batches: Sequence[Batch], generator: torch.Generator) -> TokenValues:
    """Measure the critic's values on one sample of every example."""
    found = [part for batch in batches for part in _measure_batch(subject, batch, generator)]
    true, own, products, unlikely = (torch.cat(parts).mean().item() for parts in zip(*found, strict=True))
    return TokenValues(
        prefixes=sum(len(part[0]) for part in found),
        true_spread=max(true, 0.0) ** 0.5,
        critic_spread=own**0.5,
        correlation=products / (true * own) ** 0.5 if true > 0 and own > 0 else float("nan"),
        unlikely_favourites=unlikely,
    )


def _measure_batch(
    subject: Subject, batch: Batch, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield what `compare_values` finds, and whether the token of the highest value is unlikely, for some prefixes."""
    actor = subject.actor
    memory = actor.encode(batch.sources, batch.source_mask)
    drawn = sample_examples(subject, batch, memory, generator).sample
    logits, states = actor.score(memory, drawn.tokens)
    probabilities = torch.softmax(logits, dim=2)
    columns = choose_columns(subject.critic, actor.special, batch, probabilities[:, 0])
    values = all_values(subject.critic, subject.score, actor.special, batch, drawn.tokens, drawn.mask, states, columns)
    lengths = actor.special.lengths(batch.references, batch.reference_mask)
    for place in PLACES:
        steps = (place * lengths).long().clamp(max=drawn.mask.shape[1] - 1)
        alive = drawn.mask.gather(1, steps[:, None]).flatten().nonzero().flatten()
        for rows in torch.split(alive, PREFIXES_AT_ONCE):
            own, chances = values[rows, steps[rows]], probabilities[rows, steps[rows]]  # [B, V]
            weights, tokens = chances.topk(min(TOKENS, chances.shape[1]), dim=1)
            weights = (weights / weights.sum(dim=1, keepdim=True)).double()
            part, known = batch.select(rows), all_rows.select(memory, rows)
            returns = _continue(subject, part, known, drawn.tokens[rows], steps[rows], tokens, generator)
            favourites = chances.gather(1, own.argmax(dim=1, keepdim=True)).flatten()
            compared = compare_values(returns.double(), own.gather(1, tokens).double(), weights)
            yield *compared, (favourites < UNLIKELY).double()


def _continue(
    subject: Subject,
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
    given = given.scatter(1, ends, tokens.flatten().repeat_interleave(CONTINUATIONS)[:, None])
    special = subject.actor.special
    caps = sample_limits(special, many)
    others = sample(subject.actor, all_rows.repeat(memory, repeats), caps, generator, (given, ends[:, 0] + 1))
    scores = prefix_scores(subject.score, special, others.tokens, others.mask, many)
    return (scores[:, -1] - scores.gather(1, ends)[:, 0]).view(*tokens.shape, CONTINUATIONS)
