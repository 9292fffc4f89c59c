"""Minimum risk training (Shen et al. 2015): the expected score over a subset of the predictions.

    loss = −Σ_{Ŷ ∈ S} q(Ŷ) R(Ŷ),   q(Ŷ) = p(Ŷ | X)^α / Σ_{Ŷ' ∈ S} p(Ŷ' | X)^α

S is the set of n samples and the reference: what was drawn twice is in it once. The source's risk is a distance where
this is a score, so the sign is the other one. α < 1 makes q flatter than p, and scales the gradient:

    dloss/dθ = −α Σ_{Ŷ ∈ S} q(Ŷ) (R(Ŷ) − Σ_{Ŷ' ∈ S} q(Ŷ') R(Ŷ')) d log p(Ŷ | X)/dθ

With `candidates: beam` S is the n-best list of a beam search of width n alone, without the reference: the "MWER" of
Prabhavalkar et al. 2018, where α = 1. Nothing is drawn then. The mean error of the list, which they subtract, is a
constant within the list: the gradient above does not change.

Shapes: B examples, K candidates each (n + 1 with the reference, else n), T tokens.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Aliases, Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.experience import (
    Experience,
    Scored,
    draw_reward_masks,
    gather_experience,
    score_beside_references,
)
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.n_best import search_n_best
from seqcritic.methods.rollout import whole_scores
from seqcritic.methods.terms import prepare_terms
from seqcritic.settings.base import Factor, Samples, Section
from seqcritic.tensors import rows as rows_of

Candidates: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""log p and R, both [B, K], and tokens [B, K, T]."""


class MinimumRiskSettings(Section):
    """The subset over which the risk is taken, and how sharp the distribution on it is."""

    candidates: Literal["sample", "beam"] = Field(
        "sample", description="samples and the reference, or beam: the n best of a beam search alone (MWER)"
    )
    samples: Samples = Field(
        10,
        description="n: samples for each example, besides the reference; 100 in the source, at ten times the cost. "
        "With candidates=beam, the width of the beam; 4 there",
    )
    sharpness: Factor = Field(5e-3, description="α; 5e-3 in the source, 1 in that of candidates=beam")


def repeated(candidates: Tensor) -> Tensor:
    """Return [B, K], True where a candidate [B, K, T] equals an earlier one of its example."""
    # K is some ten, so that all pairs can be compared.
    same = (candidates[:, :, None] == candidates[:, None]).all(dim=3)  # [B, K, K]
    return same.tril(diagonal=-1).any(dim=2)


def risk(log_probabilities: Tensor, scores: Tensor, left_out: Tensor, sharpness: float) -> Tensor:
    """Return −Σ q R, the mean over examples, from log-probabilities, scores and what is left out, all [B, K]."""
    # A softmax over the set is q: normalising α log p there is what the method means by sharpness.
    weights = torch.softmax((sharpness * log_probabilities).masked_fill(left_out, -torch.inf), dim=1)
    return -(weights * scores).sum(dim=1).mean()


@register_method
class MinimumRisk(RewardMethod):
    """Make the better candidates of each example likelier at the expense of the worse."""

    name = "minimum-risk"
    aliases: ClassVar[Aliases] = {"mrt": {}, "mwer": {"candidates": "beam", "sharpness": 1.0}}
    Settings = MinimumRiskSettings
    traits = Traits(9.1, 9.1)
    trains: tuple[str, ...] = ("actor",)
    own: MinimumRiskSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the risk over the candidates."""
        own, common = self.own, self.settings
        seen: Scored
        if own.candidates == "beam":
            seen, (log_probabilities, scores, candidates) = self._search(networks, batch, generator)
            to_log = {"candidate_score": scores.mean()} | seen.term_measurements()
        else:
            seen = drawn = gather_experience(
                networks,
                batch,
                common,
                self.score,
                self.shaping,
                generator,
                samples=own.samples,
                with_references=True,
            )
            log_probabilities, scores, candidates = self._sampled(drawn, batch, networks.actor.special)
            to_log = drawn.measurements
        left_out = repeated(candidates)
        loss = risk(log_probabilities, scores, left_out, own.sharpness)
        distinct = (~left_out).sum() / len(batch)
        measurements = {"actor_loss": loss.detach(), "distinct_candidates": distinct}
        return Outcome(seen.add_terms(loss, common), measurements | to_log)

    def _search(self, networks: Networks, batch: Batch, generator: torch.Generator) -> tuple[Scored, Candidates]:
        """Return the actor's view of the n best, and log p, R and tokens of them."""
        actor, count = networks.actor, self.own.samples
        masks = draw_reward_masks(actor, batch, self.settings, generator)
        memory = actor.encode(batch.sources, batch.source_mask, masks)
        terms = prepare_terms(networks, batch, memory, masks, self.settings, generator)
        # The search needs no graph; its hypotheses are scored again below, with one.
        found = search_n_best(actor, rows_of.detach(memory), batch, count)
        tokens, mask = found.tokens.flatten(0, 1), found.mask.flatten(0, 1)
        seen = score_beside_references(actor, memory, tokens, mask, batch, terms)
        log_probabilities = token_log_probabilities(seen.logits, tokens).sum(dim=1).view(len(batch), count)
        scores = whole_scores(self.score, actor.special, tokens, mask, batch.repeat(count)).view(len(batch), count)
        return seen, (log_probabilities, scores.to(log_probabilities.dtype), found.tokens)

    def _sampled(self, seen: Experience, batch: Batch, special: SpecialTokens) -> Candidates:
        """Return log p and R [B, K] and tokens [B, K, T] of the reference and, after it, the samples."""
        assert seen.reference_log_probabilities is not None
        rows = (len(batch), -1)
        sample, references = seen.rollout.sample, batch.references
        of_reference, of_samples = seen.reference_log_probabilities.sum(dim=1), seen.token_log_probabilities.sum(dim=1)
        # The reference is a candidate like the others and is scored like them: it need not be the best of the set.
        reference_scores = whole_scores(self.score, special, references, batch.reference_mask, batch)[:, None]
        # Rewards add up to R(Ŷ), with shaping and without.
        returns = seen.rollout.rewards.sum(dim=1).view(rows)
        # Tokens alone tell candidates apart: one that was cut is longer than any that ended before the same maximum
        # length.
        width = max(sample.tokens.shape[1], references.shape[1])
        tokens, own = (
            pad(part, (0, width - part.shape[1]), value=special.padding).view(len(batch), -1, width)
            for part in (sample.tokens, references)
        )
        return (
            torch.cat([of_reference[:, None], of_samples.view(rows)], dim=1),
            torch.cat([reference_scores.to(returns.dtype), returns], dim=1),
            torch.cat([own, tokens], dim=1),
        )
