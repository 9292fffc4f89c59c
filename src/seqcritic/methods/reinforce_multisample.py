"""REINFORCE with the mean return of an example's other samples as the baseline (Wu et al. 2016).

    dV/dθ ≈ 1/M Σ_m Σ_t d log p(ŷ_t^m | Ŷ^m_1..t-1)/dθ · (R(Ŷ^m) − 1/(M − 1) Σ_{n≠m} R(Ŷ^n))

The sample itself is left out of its baseline. With it, as a mean over all M, the gradient would be (M − 1)/M of this
one: the same direction at a smaller scale.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Aliases, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.experience import Experience
from seqcritic.methods.sequence_reinforce import SequenceReinforce
from seqcritic.settings.base import Section, Several


class ReinforceMultisampleSettings(Section):
    """REINFORCE with the other samples as the baseline."""

    samples: Several = Field(4, description="M: samples for each example; instead of method.samples")


@register_method
class ReinforceMultisample(SequenceReinforce):
    """Several samples of one example are each other's baseline; nothing has to be learned."""

    name = "reinforce-multisample"
    aliases: ClassVar[Aliases] = {"rloo": {}}
    Settings = ReinforceMultisampleSettings
    traits = Traits(3.4, 4.2)
    own: ReinforceMultisampleSettings

    @property
    def num_samples(self) -> int:
        """M, at least 2."""
        return self.own.samples

    def baselines(self, networks: Networks, batch: Batch, seen: Experience, returns: Tensor) -> Tensor:
        """Return the mean return [B, M] of the other samples."""
        return (returns.sum(dim=1, keepdim=True) - returns) / (returns.shape[1] - 1)
