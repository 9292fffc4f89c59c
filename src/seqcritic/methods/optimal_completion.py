"""Optimal completion distillation (OCD, Sabour, Chan and Norouzi 2019): after any prefix, the tokens that cost least.

    d*(a) = min over completions C of d(Ŷ_1..t-1 a C, Y),   Q*(a) = −d*(a)
    loss = Σ_t KL(π*_t ‖ p(· | Ŷ_1..t-1)),   π*_t(a) ∝ exp(Q*(a) / τ);   τ = 0: uniform over the best tokens

Ŷ is drawn from the actor, d is the edit distance. One row of its table says it all: with D_j the distance of the prefix
to the first j tokens of the reference, the least cost of going on is min_j D_j, to be had by going on with y_{j+1}, …
from any j that attains it. Every other token costs one more; the end token costs D_|Y| at once. No critic has to learn
these values: for edit distances they are known. An unknown token of the reference matches nothing, so that it costs one
whatever is said in its place.

With `objective: values` the actor follows the optimal values as it follows a critic in actor-critic,

    loss = −Σ_t Σ_a p(a | Ŷ_1..t-1) Q*(a; Ŷ_1..t-1, Y)

which is off actor-critic with the exact values of the actor's own policy by what the actor does worse than it could.

Of several references the nearest counts, as in the score; with `score.normalise` each distance is divided by the length
of its reference, and so is the unit of τ.

Shapes: B sequences, T tokens, R references of each, U reference tokens, N unmasked tokens, V vocabulary.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Aliases, Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Scorable, Score
from seqcritic.errors import UserError
from seqcritic.methods.experience import gather_experience
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.masked_losses import soft_values
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.rollout import as_scorable
from seqcritic.scores.edit_distance import NEVER, EditDistanceScore, distance_table
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


def completion_distances(
    before: Packed, references: Tensor, lengths: Tensor, num_tokens: int, special: SpecialTokens, unknown: int | None
) -> Tensor:
    """Return d* [N, V] of every next token at the counted places of predictions, to one reference [B, U] each.

    `before`: D [N, U + 1] of the prefixes before these places.
    """
    table = before.rows  # [N, U + 1]
    of_row = before.positions // before.shape[1]  # the sequence of each place
    references, lengths = references[of_row], lengths[of_row, None]  # [N, U], [N, 1]
    positions = torch.arange(table.shape[1], device=table.device)  # [U + 1]
    inside = positions[:-1] < lengths  # [N, U]
    matched = inside if unknown is None else inside & (references != unknown)
    # What the unknown tokens after the first j will cost, whatever is said in their place.
    lost = torch.nn.functional.pad((inside & ~matched).flip(1).cumsum(dim=1).flip(1), (0, 1)).to(table.dtype)
    # Any token can stand for y_{j+1} as a wrong one, or against nothing, at the cost of one.
    substituted = torch.where(inside, table[:, :-1] + lost[:, 1:], NEVER).amin(dim=1)
    inserted = torch.where(positions <= lengths, table + lost, NEVER).amin(dim=1)
    of_others = torch.minimum(substituted, inserted) + 1
    right = torch.where(matched, table[:, :-1] + lost[:, 1:], NEVER)
    distances = of_others[:, None].repeat(1, num_tokens).scatter_reduce_(1, references, right, "amin")
    distances[:, list(special.end)] = table.gather(1, lengths)
    return distances


def optimal_values(
    score: EditDistanceScore, evaluated: Scorable, mask: Tensor, num_tokens: int, special: SpecialTokens
) -> Packed:
    """Return Q* [N, V], up to a constant of each place, where the mask [B, T] of the evaluated predictions is True."""
    found: Tensor | None = None
    for references, lengths in zip(evaluated.references.unbind(1), evaluated.reference_lengths.unbind(1), strict=True):
        table = distance_table(evaluated.predictions[:, :-1], references, score.unknown)  # [B, T, U + 1]
        rows = Packed.of(table, mask)
        distances = completion_distances(rows, references, lengths, num_tokens, special, score.unknown)
        values = -distances.to(torch.get_default_dtype())
        if score.normalise:
            values = 1 + values / lengths.clamp(min=1)[rows.positions // rows.shape[1], None]
        found = values if found is None else torch.maximum(found, values)
    assert found is not None, "an example has a reference"
    return rows._replace(rows=found)


def optimal_policy(values: Tensor, temperature: float) -> Tensor:
    """π* [N, V] ∝ exp(Q* / τ) of values [N, V]; uniform over the best ones where τ is 0."""
    if temperature > 0:
        return torch.softmax(values / temperature, dim=1)
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
