"""Self-critical training (Rennie et al. 2017): the actor's own greedy prediction is the baseline.

    dV/dθ ≈ Σ_t d log p(ŷ_t | Ŷ_1..t-1)/dθ · (R(Ŷ) − R(Ŷ_greedy))

What does better than the prediction that the actor would be evaluated by is made likelier, what does worse less likely.
A greedy prediction is cut where a sample would be cut.

Shapes: B examples, M samples each, T tokens.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Aliases, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.decoding.sampling import decode_greedily
from seqcritic.methods.experience import Experience
from seqcritic.methods.rollout import sample_maximum_lengths, whole_scores
from seqcritic.methods.sequence_reinforce import SequenceReinforce


@register_method
class SelfCritical(SequenceReinforce):
    """The return of greedy search is subtracted from that of every sample."""

    name = "self-critical"
    aliases: ClassVar[Aliases] = {"scst": {}}
    traits = Traits(1.9, 2.5)

    def baselines(self, networks: Networks, batch: Batch, seen: Experience, returns: Tensor) -> Tensor:
        """Return the greedy prediction's return [B, 1], by the policy that drew the samples, its dropout included."""
        special = networks.actor.special
        maximum_lengths = sample_maximum_lengths(networks.actor, batch)
        found = decode_greedily(networks.actor, seen.memory, maximum_lengths)
        # Both: what was cut has no end token, and the padding behind it is no part of the prediction.
        mask = (torch.arange(found.shape[1], device=found.device) < maximum_lengths[:, None]) & special.up_to_end(found)
        return whole_scores(self.score, special, found, mask, batch)[:, None].to(returns.dtype)
