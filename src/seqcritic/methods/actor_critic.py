"""Actor-critic for sequence prediction: Algorithm 1 of Bahdanau et al. 2017.

    dV/dθ ≈ Σ_t Σ_a dp(a | Ŷ_1..t-1)/dθ · Q̂(a; Ŷ_1..t-1, Y)  +  λ_LL Σ_t d log p(y_t | Y_1..t-1)/dθ

Ŷ is drawn from the delayed actor p'; the critic learns at the same time (policy_evaluation.py). Where M samples
are drawn we average over them, where the paper sums: the scale of the loss then does not depend on M.

Beyond the paper, `method.correction` = η adds

    η Σ_t d log p(ŷ_t | Ŷ_1..t-1)/dθ · (G_t − Q̂(ŷ_t; Ŷ_1..t-1, Y)),   G_t = Σ_{τ≥t} r_τ

which leaves 1 − η of the bias that the critic's errors cause, for more noise: the dial of interpolated policy gradients
(Gu et al. 2017), whose control variate with exact sum over actions is Q̂. It holds for samples of the actor itself, so
with η ≠ 0 there is no delayed actor, as in REINFORCE. `auto` finds η (correction.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import CRITIC, DELAYED_ACTOR, TARGET_CRITIC, Networks, NetworkSpec
from seqcritic.contracts.score import Score
from seqcritic.methods import losses
from seqcritic.methods.correction import CORRECTION, REST, AutomaticCorrection, gradient_of, with_gradient
from seqcritic.methods.experience import Experience, gather_experience
from seqcritic.methods.losses import mean_over_sequences
from seqcritic.methods.masked_losses import soft_values, token_log_probabilities
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.policy_evaluation import Evaluation, evaluate_policy
from seqcritic.methods.rollout import Draw
from seqcritic.settings.methods import MethodSettings
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Values


@register_method
class ActorCritic(RewardMethod):
    """The actor follows the critic's values of all tokens; the critic follows the delayed actor's returns."""

    name = "actor-critic"
    traits = Traits(3.2, 3.8, takes_correction=True, follows_values=True)
    needs: ClassVar[tuple[NetworkSpec, ...]] = (DELAYED_ACTOR, CRITIC, TARGET_CRITIC)
    trains: tuple[str, ...] = ("actor", "critic")

    def __init__(self, settings: MethodSettings, score: Score, shaping: bool) -> None:
        super().__init__(settings, score, shaping)
        self.automatic = AutomaticCorrection() if settings.correction == "auto" else None

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return actor loss plus critic loss: no gradient of one reaches the other's weights."""
        roll_in = self.roll_in(networks, batch, progress)
        seen = gather_experience(networks, batch, self.settings, self.score, self.shaping, generator, draw=roll_in)
        critic = evaluate_policy(networks, batch, seen.rollout, seen.states, self.settings, self.score, generator)
        # Values are detached and no token is sampled here: the sum over all tokens is exact, only prefixes are drawn.
        actor_loss = self.actor_loss(seen.logits, critic.values, seen.rollout.sample.mask)
        measurements = {"actor_loss": actor_loss.detach(), "critic_loss": critic.loss.detach()}
        measurements |= critic.measurements | seen.measurements
        loss = seen.add_terms(actor_loss, self.settings)
        if self.settings.correction == 0:
            return Outcome(loss + critic.loss, measurements)
        assert networks.sampling_actor is networks.actor, "of another policy's samples the correction would be biased"
        correction = correction_of(seen, critic)
        if self.automatic is None:
            return Outcome(loss + float(self.settings.correction) * correction + critic.loss, measurements)
        # Told before this batch is learnt from: the η that is logged is the one that is used below.
        measurements |= self.automatic.measurements()
        # Frozen weights, as below an adapter, have no gradient.
        weights = [weight for weight in networks.actor.parameters() if weight.requires_grad]
        # Two passes back through the actor in place of one: η weighs what each of them finds.
        gradients = {REST: gradient_of(loss, weights), CORRECTION: gradient_of(correction, weights)}
        # From earlier batches alone: an η that depended on this batch's gradients would bias their sum.
        eta = self.automatic.eta
        # Both gradients are known now; backward only has to hand them over.
        corrected = with_gradient(loss + eta * correction, weights, gradients[REST] + eta * gradients[CORRECTION])
        # The gradients go along, to be averaged over all processes before `observe` learns from them: all have one η.
        return Outcome(corrected + critic.loss, measurements, gradients)

    def observe(self, observations: Mapping[str, Tensor]) -> None:
        """Let the automatic correction, where there is one, learn from the gradients of a batch."""
        if self.automatic is not None:
            self.automatic.observe(observations)

    def tensors(self) -> dict[str, Tensor]:
        """Return the state of the automatic correction."""
        return {} if self.automatic is None else self.automatic.tensors()

    def load_tensors(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore the state of the automatic correction."""
        assert self.automatic is not None, "nothing else has a state"
        self.automatic.load_tensors(tensors, device)

    def roll_in(self, networks: Networks, batch: Batch, progress: float) -> Draw | None:
        """Return what draws the predictions, if not the sampling actor alone."""
        return None

    def actor_loss(self, logits: Packed, values: Values, mask: Tensor) -> Tensor:
        """Return −Σ_t Σ_a p(a) Q̂(a) from the actor's packed logits [N, V] and the critic's values."""
        return -mean_over_sequences(soft_values(logits, values), mask)


def correction_of(seen: Experience, critic: Evaluation) -> Tensor:
    """Return −Σ_t log p(ŷ_t) (G_t − Q̂(ŷ_t)) of the actor's own samples."""
    sample = seen.rollout.sample
    predicted = critic.values.of_tokens(sample.tokens)
    # From the logits, which the sum over all tokens has made already, with their graph.
    return losses.correction_loss(
        token_log_probabilities(seen.logits, sample.tokens), critic.returns, predicted, sample.mask
    )
