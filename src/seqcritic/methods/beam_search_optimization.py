"""Beam-search optimisation (Wiseman and Rush 2016): the reference must not fall out of the beam.

    loss = Σ_violations Δ(Ŷ) [1 − s(Y_1..t) + s(Ŷ_1..t)],   s(Y_1..t) = log p(Y_1..t | X)

At a violation (decoding/beam_violations.py) Ŷ_1..t is the incorrect hypothesis that would stand K-th after the
reference and K − 2 others, or at the last token the best, that the reference's prefix does not beat by the margin 1;
after it the search starts again from the reference. K grows over the updates. Of both prefixes only what follows the
last restart counts, for the rest is the same; so it does in the cost, by which a rival that scores well is left alone:

    Δ(Ŷ) = 1 − R(Ŷ_r..t, Y_r..t) / R(Y_r..t, Y_r..t),   r the first position after the restart

With the paper's smoothed sentence BLEU as R this is its 1 − BLEU; where the reference's part scores nothing, as a lone
end token does, Δ = 1. The paper scores prefixes by un-normalised outputs of the network, and searches by them. Here s
is the log-probability: it is what our searches prune by, and what likelihood has trained, so that the beam is a
sensible one from the first update on.

The search is made without a graph; then the rivals and the references are scored in one pass of the actor with one. A
rival that leaves the reference with its last token needs no row of its own: the reference's has its probability.

Shapes: B examples, T tokens, V vocabulary, N violations.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Decode, Scorable, Score
from seqcritic.data.words import UNKNOWN_REFERENCE_WORD, UNKNOWN_WORD
from seqcritic.decoding.beam_violations import Violations, find_violations
from seqcritic.methods import losses
from seqcritic.methods.experience import draw_reward_masks, score_beside_references
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.terms import prepare_terms
from seqcritic.settings.base import Section, Several
from seqcritic.tensors import rows

MARGIN = 1.0


class BeamSearchOptimizationSettings(Section):
    """Of `beam-search-optimization`."""

    initial_width: Several = Field(2, description="K of the training beam at first; 2 in the paper")
    width: Several = Field(6, description="K at last, one more than the beam that is searched with; 6 in the paper")


def beam_width(settings: BeamSearchOptimizationSettings, progress: float) -> int:
    """Return K, from `initial_width` to `width` by one after each equal part of the updates."""
    first = min(settings.initial_width, settings.width)
    # Progress stays below 1, so that the last of these parts has the width itself.
    return first + int(progress * (settings.width - first + 1))


@register_method
class BeamSearchOptimization(RewardMethod):
    """The actor learns to keep the reference in its beam, where what would replace it scores badly."""

    name = "beam-search-optimization"
    Settings = BeamSearchOptimizationSettings
    traits = Traits(3.0, 3.1)
    trains: tuple[str, ...] = ("actor",)
    own: BeamSearchOptimizationSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the loss of the violations of one search; draws nothing but what is dropped."""
        actor = networks.actor
        masks = draw_reward_masks(actor, batch, self.settings, generator)
        memory = actor.encode(batch.sources, batch.source_mask, masks)
        terms = prepare_terms(networks, batch, memory, masks, self.settings, generator)
        width = beam_width(self.own, progress)
        found = find_violations(actor, rows.detach(memory), batch.references, batch.reference_mask, width, MARGIN)
        decode = None if batch.texts is None else batch.texts.decode
        costs = violation_costs(found, batch.references, self.score, actor.special, decode)

        # Rivals of one token differ from the reference in that token alone: its logits there are known already.
        long = found.positions > found.starts
        mask = _up_to_position(found, actor.special)
        seen = score_beside_references(
            actor, memory, found.tokens[long], mask[long], batch, terms, references=True, rows=found.rows[long]
        )
        assert seen.reference_logits is not None
        log_probabilities = torch.log_softmax(seen.reference_logits.padded(), dim=2)
        # Running sums: the score of any stretch of a reference is one difference.
        sums = pad(losses.gather_chosen(log_probabilities, batch.references).cumsum(dim=1), (1, 0))  # [B, T + 1]
        reference_scores = sums[found.rows, found.positions + 1] - sums[found.rows, found.starts]
        last_tokens = found.tokens.gather(1, found.positions[:, None])[:, 0]
        # Of a single token's rival this is all: before it stands the reference.
        rival_scores = log_probabilities[found.rows, found.positions, last_tokens]
        chosen = token_log_probabilities(seen.logits, found.tokens[long])
        # Before the restart the rival is the reference, and counts in neither of the two scores.
        after_start = torch.arange(mask.shape[1], device=mask.device) >= found.starts[:, None]
        of_long = torch.where((mask & after_start)[long], chosen, 0.0).sum(dim=1)
        # Only what was scored as a whole replaces the single token's log-probability.
        rival_scores = rival_scores.index_put((long.nonzero()[:, 0],), of_long)
        # Without a violation an empty sum: a loss of 0 that has a graph all the same.
        loss = (costs * (MARGIN - reference_scores + rival_scores)).sum() / len(batch)
        measurements = {
            "actor_loss": loss.detach(),
            "violations": costs.new_tensor(len(costs) / len(batch)),
            "violation_cost": costs.sum() / max(len(costs), 1),
            "beam_width": costs.new_tensor(width),
        }
        loss = seen.add_terms(loss, self.settings)
        return Outcome(loss, measurements | seen.term_measurements())


def violation_costs(
    found: Violations, references: Tensor, score: Score, special: SpecialTokens, decode: Decode | None = None
) -> Tensor:
    """Return Δ [N] of the violations, in the default dtype.

    A part of a reference has no raw text. `decode`, which scores of texts need, makes one of its tokens, in which no
    unknown token equals one of a rival.
    """

    def read_parts() -> list[tuple[str, ...]]:
        assert decode is not None, "a batch that was made of tokens alone has no texts to score"
        parts = zip(ours.tolist(), our_lengths.tolist(), strict=True)
        return [(decode(part[:length]).replace(UNKNOWN_WORD, UNKNOWN_REFERENCE_WORD),) for part, length in parts]

    steps = torch.arange(references.shape[1], device=references.device)
    # Clamped only to be a column that there is: beyond the last one nothing is `inside`.
    source = (found.starts[:, None] + steps).clamp(max=references.shape[1] - 1)  # [N, T]
    inside = steps <= (found.positions - found.starts)[:, None]
    rivals = torch.where(inside, found.tokens.gather(1, source), special.padding)
    ours = torch.where(inside, references[found.rows].gather(1, source), special.padding)
    lengths, our_lengths = ((~special.is_over(part)).sum(dim=1) for part in (rivals, ours))
    parts = (ours[:, None], our_lengths[:, None], decode, read_parts)
    reached = score.score(Scorable(rivals, lengths, *parts))
    possible = score.score(Scorable(ours, our_lengths, *parts))
    fraction = reached / torch.where(possible > 0, possible, 1.0)
    # Where the reference's part itself scores nothing there is no scale: a violation costs all.
    # A rival may score better than the reference's own part: it is left alone then, not preferred.
    return torch.where(possible > 0, (1 - fraction).clamp(min=0), 1.0)


def _up_to_position(found: Violations, special: SpecialTokens) -> Tensor:
    """Return [N, T], True on the rivals' tokens up to their positions and their first end tokens."""
    steps = torch.arange(found.tokens.shape[1], device=found.tokens.device)
    return (steps <= found.positions[:, None]) & special.up_to_end(found.tokens)
