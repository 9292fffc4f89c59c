"""Direct loss minimisation (McAllester, Hazan and Keshet 2010): decoding with the score's help, and without it.

    Ŷ(ε) = argmax log p(Y') + ε R(Y'),   loss = (log p(Ŷ(low)) − log p(Ŷ(high))) / (high − low)

with (low, high) = (0, ε), towards better, (−ε, 0), away from worse, or (−ε, ε), both: the mean of the other two. As ε
goes to 0 the expected gradient, for scores linear in the weights and inputs with a density, is that of −R(Ŷ(0)), the
score of what is decoded: no sampling policy and no surrogate. Larger ε finds a difference in more examples and is
biased.

The one-sided losses are the paper's. Where one input has several references, as noise makes them, each of the two sees
only half of the examples: towards better only those that speak against what is decoded, so that two candidate answers
are held at equal probability; away from worse only those that speak for it. Both together see all.

The paper's argmax runs over all answers by dynamic programming. A recurrent actor and a score of whole sequences allow
none, so both run over one set of candidates: the best of a beam search, and samples, which differ from each other more.
Only the score of whole candidates is needed, so any score will do.

Shapes: B examples, N candidates of each, T tokens, V vocabulary.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import pad

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.experience import draw_reward_masks, score_beside_references
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.n_best import search_n_best
from seqcritic.methods.rollout import roll_out, sample_maximum_lengths, whole_scores
from seqcritic.methods.terms import prepare_terms
from seqcritic.settings.base import Factor, Samples, Section
from seqcritic.tensors import rows


class DirectLossSettings(Section):
    """Of `direct-loss`."""

    direction: Literal["better", "worse", "both"] = Field(
        "both", description="towards better answers, away from worse ones (the paper's two), or their mean"
    )
    epsilon: Factor = Field(1.0, description="ε: nats that a point of the score is worth in the augmented decoding")
    width: Samples = Field(4, description="of the beam, whose best are candidates; exact search in the paper")
    samples: Samples = Field(4, description="sampled candidates for each example; none in the paper")


def choose_pairs(log_probabilities: Tensor, scores: Tensor, low: float, high: float) -> Tensor:
    """Return [B, 2], the positions of Ŷ(low) and Ŷ(high) among candidates with log-probabilities and scores [B, N].

    Of equal ones the first is the best.
    """
    return torch.stack([(log_probabilities + epsilon * scores).argmax(dim=1) for epsilon in (low, high)], dim=1)


def direct_loss(pair_log_probabilities: Tensor, low: float, high: float) -> Tensor:
    """(log p(Ŷ(low)) − log p(Ŷ(high))) / (high − low), averaged over pairs [B, 2]."""
    return (pair_log_probabilities[:, 0] - pair_log_probabilities[:, 1]).mean() / (high - low)


@register_method
class DirectLoss(RewardMethod):
    """The actor moves from what it decodes to what it would decode if it knew the score."""

    name = "direct-loss"
    Settings = DirectLossSettings
    traits = Traits(4.1, 4.8)
    trains: tuple[str, ...] = ("actor",)
    own: DirectLossSettings

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the direct loss on pairs of candidates."""
        own = self.own
        low = 0.0 if own.direction == "better" else -own.epsilon
        high = 0.0 if own.direction == "worse" else own.epsilon
        actor = networks.actor
        masks = draw_reward_masks(actor, batch, self.settings, generator)
        memory = actor.encode(batch.sources, batch.source_mask, masks)
        terms = prepare_terms(networks, batch, memory, masks, self.settings, generator)
        tokens, log_probabilities, scores, measurements = self._candidates(actor, memory, batch, generator)
        # Chosen by constants; only the two that are chosen are scored again, with a graph.
        pairs = choose_pairs(log_probabilities, scores, low, high)  # [B, 2]
        chosen = tokens.gather(1, pairs[:, :, None].expand(-1, -1, tokens.shape[2])).flatten(0, 1)  # [B * 2, T]
        # What was cut has no end token: `up_to_end` alone would count the padding behind its maximum length.
        within = (
            torch.arange(chosen.shape[1], device=chosen.device)
            < sample_maximum_lengths(actor, batch).repeat_interleave(2)[:, None]
        )
        mask = actor.special.up_to_end(chosen) & within
        seen = score_beside_references(actor, memory, chosen, mask, batch, terms)
        of_pairs = token_log_probabilities(seen.logits, chosen).sum(dim=1).view(-1, 2)  # [B, 2]
        loss = direct_loss(of_pairs, low, high)
        # Ŷ(0), which the actor would say among the candidates.
        decoded = log_probabilities.argmax(dim=1, keepdim=True)
        pair_scores = scores.gather(1, pairs)
        measurements |= {
            "actor_loss": loss.detach(),
            "decoded_score": scores.gather(1, decoded).mean(),
            "score_gap": (pair_scores[:, 1] - pair_scores[:, 0]).mean(),
            "pairs_differing": (chosen[::2] != chosen[1::2]).any(dim=1).double().mean(),
        }
        return Outcome(seen.add_terms(loss, self.settings), measurements | seen.term_measurements())

    @torch.no_grad()
    def _candidates(
        self, actor: Actor, memory: Memory, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Return tokens [B, N, T], log-probabilities and scores [B, N] of the beam's best and samples; what to log."""
        own = self.own
        repeated = batch.repeat(own.samples)
        rollout = roll_out(
            actor, rows.repeat(rows.detach(memory), own.samples), repeated, self.score, self.shaping, generator
        )
        sample = rollout.sample
        # Of the draw itself, without another pass: the actor that drew is the one that is trained.
        sampled = sample.token_log_probabilities.sum(dim=1)
        special = actor.special
        found, masks, searched = search_n_best(actor, memory, batch, own.width)
        scores = whole_scores(self.score, special, found.flatten(0, 1), masks.flatten(0, 1), batch.repeat(own.width))
        width = max(found.shape[2], sample.tokens.shape[1])
        tokens = sample.tokens.view(len(batch), own.samples, -1)
        both = [pad(part, (0, width - part.shape[2]), value=special.padding) for part in (found, tokens)]
        return (
            torch.cat(both, dim=1),
            # In float64, in which the search has added up its own.
            torch.cat([searched, sampled.view(len(batch), -1).to(searched.dtype)], dim=1),
            # Rewards add up to R(Ŷ), with shaping and without.
            torch.cat([scores.view(len(batch), -1), rollout.rewards.sum(dim=1).view(len(batch), -1)], dim=1),
            rollout.measurements(repeated),
        )
