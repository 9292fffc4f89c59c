"""Entropy-regularised actor-critic: ERAC of Dai, Xie and Hovy 2018.

The return counts the policy's entropy H at every step beside the reward, with the temperature τ:

    dV/dθ ≈ Σ_t [Σ_a dp(a | Ŷ_1..t-1)/dθ · Q̂(a; Ŷ_1..t-1, Y)  +  τ dH(p(· | Ŷ_1..t-1))/dθ]  +  λ_LL …
    q_t = r_t + τ H(p'(· | Ŷ_1..t)) + Σ_a p'(a | Ŷ_1..t) Q̂'(a; Ŷ_1..t)

The critic's values are soft: what follows a token is worth its rewards and its entropies (policy_evaluation.py, which
asks for the temperature too when it pre-trains the critic). With τ = 0 this is actor-critic.

The authors sample from the present actor (our γ_θ = 1) and divide log p in the entropy's gradient by its norm over
the vocabulary "to avoid unstability"; here it is the gradient of the entropy itself, so that with exact soft values
the expected gradient is that of the regularised return.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from seqcritic.contracts.method import Aliases, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.methods.actor_critic import ActorCritic
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.masked_losses import soft_values
from seqcritic.settings.base import Section, Weight
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Values


class EntropyActorCriticSettings(Section):
    """Of `entropy-actor-critic`."""

    temperature: Weight = Field(0.04, description="τ: worth of a nat of entropy; the authors' value for translation")


@register_method
class EntropyActorCritic(ActorCritic):
    """Actor-critic whose policy is rewarded for its entropy."""

    name = "entropy-actor-critic"
    aliases: ClassVar[Aliases] = {"erac": {}}
    Settings = EntropyActorCriticSettings
    traits = Traits(3.0, 3.5, takes_correction=True, follows_values=True)
    own: EntropyActorCriticSettings

    @classmethod
    def temperature(cls, own: Section) -> float:
        """Return τ."""
        assert isinstance(own, EntropyActorCriticSettings)
        return own.temperature

    def actor_loss(self, logits: Packed, values: Values, mask: Tensor) -> Tensor:
        """Return −Σ_t [Σ_a p(a) Q̂(a) + τ H(p)] from packed logits [N, V] and the critic's values."""
        return -mean_over_sequences(soft_values(logits, values, self.settings.temperature), mask)
