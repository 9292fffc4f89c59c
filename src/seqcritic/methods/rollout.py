"""Sampled predictions with their rewards: the experience all reward-driven methods learn from.

Shapes: B sequences (M samples of an example stand in a row), T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory, SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.score import Scorable, Score, rewards_at_end, rewards_from_prefixes
from seqcritic.decoding.prefix_rollouts import roll_out_prefixes
from seqcritic.decoding.sampling import Sample, sample
from seqcritic.errors import NonFiniteError

Draw = Callable[[Actor, Memory, Tensor, torch.Generator], Sample]
"""A way to draw predictions with the arguments of `sample`."""


@dataclass(frozen=True)
class Rollout:
    """A batch of samples and their rewards [B, T].

    `further_returns` [B, T], where asked for: the mean return from token t on of other samples that share Ŷ_1..t.
    """

    sample: Sample
    rewards: Tensor
    special: SpecialTokens
    further_returns: Tensor | None = None

    def measurements(self, batch: Batch) -> dict[str, Tensor]:
        """Return what tells whether sampling goes well: return, length against the reference, entropy."""
        mask = self.sample.mask
        lengths = self.special.lengths(self.sample.tokens, mask).sum()
        return {
            "sampled_return": self.rewards.sum() / len(mask),
            "length_ratio": lengths / self.special.lengths(batch.references, batch.reference_mask).sum(),
            "policy_entropy": self.sample.entropies.sum() / mask.sum(),
        }


def sample_maximum_lengths(actor: Actor, batch: Batch) -> Tensor:
    """Return how many tokens [B] a sample of an actor may have, its end token counted."""
    return actor.special.lengths(batch.references, batch.reference_mask) + actor.limits.beyond_reference


def roll_out(
    actor: Actor,
    memory: Memory,
    batch: Batch,
    score: Score,
    shaping: bool,
    generator: torch.Generator,
    num_given: Tensor | None = None,
    *,
    num_further: int = 0,
    temperature: float = 0.0,
    draw: Draw | None = None,
) -> Rollout:
    """Sample from the actor, or by `draw`, and reward every token; memory and batch are already repeated M times.

    With `num_given` [B], each sample begins with so many tokens of its reference. Each prefix of a sample is continued
    by `num_further` others, whose returns count entropies for `temperature`.
    """
    special = actor.special
    maximum_lengths = sample_maximum_lengths(actor, batch)
    given = None if num_given is None else (batch.references, num_given)
    drawn = (
        draw(actor, memory, maximum_lengths, generator)
        if draw
        else sample(actor, memory, maximum_lengths, generator, given)
    )
    # Scores come in the default dtype; what is learnt from them has the actor's.
    rewards = score_tokens(score, special, drawn.tokens, drawn.mask, batch, shaping).to(drawn.states.dtype)
    # Told here, where it is the score's fault: in a loss it could be anybody's.
    if not bool(torch.isfinite(rewards).all()):
        raise NonFiniteError("a reward is not finite; check the score")
    if not num_further:
        return Rollout(drawn, rewards, special)
    others = roll_out_prefixes(actor, memory, drawn.tokens, drawn.mask, maximum_lengths, num_further, generator)
    rows, positions = others.rows, others.positions
    # They have no mask of their own. Where one id ends and pads the end token falls out too, which no length counts.
    mask = special.up_to_end(others.tokens) & (others.tokens != special.padding)
    scores = whole_scores(score, special, others.tokens, mask, batch.select(rows))
    earned = (rewards.cumsum(dim=1) - rewards)[rows, positions]  # before token t, by what the prefix has in common
    returns = scores.to(rewards.dtype) - earned + temperature * others.entropies
    # Where nothing follows, all samples that share the prefix have the last token's reward as their return.
    followed = torch.nn.functional.pad(drawn.mask[:, 1:], (0, 1))
    means = torch.where(followed, 0.0, rewards)
    # Accumulated, as all continuations of a prefix belong to one entry.
    further = means.index_put((rows, positions), returns / num_further, accumulate=True)
    return Rollout(drawn, rewards, special, further)


def score_tokens(
    score: Score, special: SpecialTokens, tokens: Tensor, mask: Tensor, batch: Batch, shaping: bool
) -> Tensor:
    """Return the rewards [B, T] of tokens [B, T]: by every prefix with shaping, without by whole predictions alone."""
    if shaping:
        return rewards_from_prefixes(prefix_scores(score, special, tokens, mask, batch), mask)
    return rewards_at_end(whole_scores(score, special, tokens, mask, batch), mask)


def prefix_scores(score: Score, special: SpecialTokens, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
    """Return the scores [B, T + 1] of all prefixes of tokens [B, T] against the batch's references."""
    return score.prefix_scores(as_scorable(score, special, tokens, mask, batch)).to(tokens.device)


def whole_scores(score: Score, special: SpecialTokens, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
    """Return the scores [B] of tokens [B, T] up to their end: far less work than all prefixes for scores of texts."""
    return score.score(as_scorable(score, special, tokens, mask, batch)).to(tokens.device)


def as_scorable(score: Score, special: SpecialTokens, tokens: Tensor, mask: Tensor, batch: Batch) -> Scorable:
    """Return tokens [B, T] with the batch's texts and references, as the score needs them."""
    reference_lengths = special.lengths(batch.references, batch.reference_mask)
    if score.unit == "tokens":
        references, reference_lengths = batch.all_references(reference_lengths, special)
    else:  # further references have no ids yet, and a score of texts needs none
        references, reference_lengths = batch.references[:, None], reference_lengths[:, None]
    texts = batch.texts
    return Scorable(
        # Scores are for the CPU: some are functions of texts, some count in float64.
        tokens.cpu(),
        special.lengths(tokens, mask).cpu(),
        references.cpu(),
        reference_lengths.cpu(),
        None if texts is None else texts.decode,
        None if texts is None else texts.references,
        None if texts is None else texts.sources,
    )
