"""Minimum risk training (Shen et al. 2015): the expected score over a sampled subset of the predictions.

    loss = −Σ_{Ŷ ∈ S} q(Ŷ) R(Ŷ),   q(Ŷ) = p(Ŷ | X)^α / Σ_{Ŷ' ∈ S} p(Ŷ' | X)^α

S is the set of n samples and the reference: what was drawn twice is in it once. The source's risk is a distance where
this is a score, so the sign is the other one. α < 1 makes q flatter than p, and scales the gradient:

    dloss/dθ = −α Σ_{Ŷ ∈ S} q(Ŷ) (R(Ŷ) − Σ_{Ŷ' ∈ S} q(Ŷ') R(Ŷ')) d log p(Ŷ | X)/dθ

Shapes: B examples, K = n + 1 candidates each, T tokens.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.data.batch import Batch
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.on_samples import Experience, experience
from seqcritic.methods.rollout import whole_scores
from seqcritic.sections import Factor, Samples, Section


class MinimumRiskSettings(Section):
    """The subset over which the risk is taken, and how sharp the distribution on it is."""

    samples: Samples = Field(
        10, description="n: samples for each example, besides the reference; 100 in the source, at ten times the cost"
    )
    sharpness: Factor = Field(5e-3, description="α; 5e-3 in the source")


def repeated(candidates: Tensor) -> Tensor:
    """Return [B, K], True where one of the candidates [B, K, T] has stood before."""
    same = (candidates[:, :, None] == candidates[:, None]).all(dim=3)  # [B, K, K]
    return same.tril(diagonal=-1).any(dim=2)


def risk(log_probabilities: Tensor, scores: Tensor, left_out: Tensor, sharpness: float) -> Tensor:
    """Return −Σ q R of log-probabilities, scores and what is not in the set, all [B, K], averaged over the examples."""
    weights = torch.softmax((sharpness * log_probabilities).masked_fill(left_out, -torch.inf), dim=1)
    return -(weights * scores).sum(dim=1).mean()


@register_method
class MinimumRisk(RewardMethod):
    """Make the better candidates of each example likelier at the expense of the worse."""

    name = "minimum-risk"
    Settings = MinimumRiskSettings
    traits = Traits(9.1, 9.1)
    trains: tuple[str, ...] = ("actor",)
    own: MinimumRiskSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the risk over samples and references."""
        own, common = self.own, self.settings
        seen = experience(
            networks,
            batch,
            common,
            self.score,
            self.shaping,
            generator,
            samples=own.samples,
            with_references=True,
        )
        log_probabilities, scores, candidates = self._candidates(seen, batch, networks.actor.special)
        left_out = repeated(candidates)
        loss = risk(log_probabilities, scores, left_out, own.sharpness)
        distinct = (~left_out).sum() / len(batch)
        measurements = {"actor_loss": loss.detach(), "distinct_candidates": distinct}
        return Outcome(seen.add_terms(loss, common), measurements | seen.measurements)

    def _candidates(self, seen: Experience, batch: Batch, special: SpecialTokens) -> tuple[Tensor, Tensor, Tensor]:
        """Return log p and R [B, K] and tokens [B, K, T] of the reference and, after it, the samples."""
        assert seen.reference_log_taken is not None
        rows = (len(batch), -1)
        sample, references = seen.rollout.sample, batch.references
        of_reference, of_samples = seen.reference_log_taken.sum(dim=1), seen.log_taken.sum(dim=1)
        reference_scores = whole_scores(self.score, special, references, batch.reference_mask, batch)[:, None]
        returns = seen.rollout.rewards.sum(dim=1).view(rows)
        # Tokens alone tell candidates apart: one that was cut is longer than any that ended before the same cap.
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
