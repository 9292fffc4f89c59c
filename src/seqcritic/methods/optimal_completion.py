"""Optimal completion distillation (OCD, Sabour, Chan and Norouzi 2019): after any prefix, the tokens that cost least.

    d*(a) = min over completions C of d(Ŷ_1..t-1 a C, Y),   Q*(a) = −d*(a)
    loss = Σ_t KL(π*_t ‖ p(· | Ŷ_1..t-1)),   π*_t(a) ∝ exp(Q*(a) / τ);   τ = 0: uniform over the best tokens

Ŷ is drawn from the actor, d is the edit distance. No critic has to learn these values: for edit distances they are
known (optimal_values.py).

With `objective: values` the actor follows the optimal values as it follows a critic in actor-critic,

    loss = −Σ_t Σ_a p(a | Ŷ_1..t-1) Q*(a; Ŷ_1..t-1, Y)

which is off actor-critic with the exact values of the actor's own policy by what the actor does worse than it could.

With `score.normalise` each distance is divided by the length of its reference, and so is the unit of τ.

Shapes: B sequences, T tokens, N unmasked tokens, V vocabulary.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Aliases, Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Score
from seqcritic.errors import UserError
from seqcritic.methods.experience import gather_experience
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.masked_losses import soft_values
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.optimal_values import optimal_values
from seqcritic.methods.rollout import as_scorable
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.base import Section, Weight
from seqcritic.settings.methods import MethodSettings
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Values


class OptimalCompletionSettings(Section):
    """Of `optimal-completion`."""

    temperature: Weight = Field(
        0.0, description="τ of exp(Q* / τ), in edits; 0, the source: uniform over the best next tokens"
    )
    objective: Literal["distillation", "values"] = Field(
        "distillation", description="imitate the best tokens, or values: follow Q* as actor-critic follows its critic"
    )


def optimal_policy(values: Tensor, temperature: float) -> Tensor:
    """π* [N, V] ∝ exp(Q* / τ) of values [N, V]; uniform over the best ones where τ is 0."""
    if temperature > 0:
        return torch.softmax(values / temperature, dim=1)
    # Whole numbers of edits, or quotients of them, which round alike: what is equal is equal to the last bit.
    best = (values == values.amax(dim=1, keepdim=True)).to(values.dtype)
    return best / best.sum(dim=1, keepdim=True)


def distillation_loss(logits: Packed, policy: Tensor, mask: Tensor) -> Tensor:
    """Σ_t KL(π*_t ‖ p_t) from packed logits and policies [N, V], which are constants."""
    rows = logits.rows
    # Σ_a π*(a) log p(a) without a tensor of log p: the probabilities of π* sum to 1.
    expected_log = torch.linalg.vecdot(policy, rows) - torch.logsumexp(rows, dim=1)
    return mean_over_sequences(logits.spread(-torch.special.entr(policy).sum(dim=1) - expected_log), mask)


@register_method
class OptimalCompletion(RewardMethod):
    """The actor learns, after its own prefixes, the tokens from which the reference is still nearest."""

    name = "optimal-completion"
    aliases: ClassVar[Aliases] = {"ocd": {}}
    Settings = OptimalCompletionSettings
    traits = Traits(1.7, 2.4, scores=("edit-distance", "token-error-rate"))
    trains: tuple[str, ...] = ("actor",)
    own: OptimalCompletionSettings
    score: EditDistanceScore

    def __init__(self, settings: MethodSettings, score: Score, shaping: bool) -> None:
        super().__init__(settings, score, shaping)
        if not isinstance(score, EditDistanceScore):
            raise UserError(
                "method.name: optimal-completion knows the best next tokens of edit distances alone; set "
                "score.name=edit-distance or choose another method"
            )

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the divergence from the optimal policy, or minus the expected optimal values, on samples."""
        actor, settings = networks.actor, self.settings
        seen = gather_experience(networks, batch, settings, self.score, self.shaping, generator)
        sample, special = seen.rollout.sample, actor.special
        evaluated = as_scorable(self.score, special, sample.tokens, sample.mask, batch.repeat(settings.samples))
        known = optimal_values(self.score, evaluated, sample.mask.cpu(), actor.num_tokens, special)
        logits = seen.logits
        known = known._replace(rows=known.rows.to(logits.rows), positions=known.positions.to(logits.positions.device))
        # Computed on the CPU for all unmasked tokens, and put in the order in which the actor's logits are packed.
        values = logits.align(known)
        if self.own.objective == "values":
            loss = -mean_over_sequences(soft_values(logits, Values(known)), sample.mask)
        else:
            loss = distillation_loss(logits, optimal_policy(values, self.own.temperature), sample.mask)
        chosen = values.gather(1, logits.take(sample.tokens)[:, None])[:, 0]
        measurements = {
            "actor_loss": loss.detach(),
            "optimal_share": (chosen == values.amax(dim=1)).to(loss.dtype).mean(),
        }
        return Outcome(seen.add_terms(loss, settings), measurements | seen.measurements)
