"""Training the critic: the value of every token under the sampling actor's policy (steps 5 and 6 of Algorithm 1).

    q_t = r_t + Σ_a p'(a | Ŷ_1..t) Q̂'(a; Ŷ_1..t)
    loss = Σ_t (Q̂(ŷ_t; Ŷ_1..t-1) − q_t)² + λ_C C_t

p' is the delayed actor, Q̂' the target critic; both targets and actor states are constants. At the last unmasked
token, be it the end token or the maximum length, q = r. With `temporal_difference` off, q_t is the return after ŷ_t. A
method with a temperature τ has soft rewards in place of r: τ times the entropy of the state that a token leads to is
added.

With K `target_samples`, each prefix Ŷ_1..t is continued K − 1 times more by the sampling actor, and the target is the
mean of q_t and the returns of the others: the multi-sample criterion that the paper's last sentence suggests against
the critic's bias. Of Monte-Carlo targets it leaves 1/K of the variance, of bootstrapped ones 1/K of the bias.

Where the critic adds what is known to what its network says (lookahead.py), C_t is of the network's values alone.

Shapes: B sequences (M samples of an example in a row), T tokens, V vocabulary, H actor state.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Score
from seqcritic.errors import NonFiniteError
from seqcritic.methods import losses
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.experience import draw_reward_masks
from seqcritic.methods.lookahead import add_known, known_values
from seqcritic.methods.masked_losses import chosen_values_and_penalties, expected_values
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.rollout import Rollout, roll_out
from seqcritic.settings.methods import MethodSettings
from seqcritic.tensors import rows
from seqcritic.tensors.values import Values

NOTHING = 1e-12  # a variance that is rounding


@dataclass(frozen=True)
class Evaluation:
    """The critic's values at the unmasked tokens, detached, its loss, and what to log.

    `returns` [B, T]: what was earned from each token on, entropies included where the method counts them.
    """

    values: Values
    returns: Tensor
    loss: Tensor
    measurements: dict[str, Tensor]


def evaluate_policy(
    networks: Networks,
    batch: Batch,
    rollout: Rollout,
    actor_states: Tensor,
    settings: MethodSettings,
    score: Score,
    generator: torch.Generator,
) -> Evaluation:
    """Return values and loss of the critic on a rollout of M samples an example; `batch` is not repeated.

    `actor_states` [B, T, H] are the trained actor's on the sampled tokens; the target critic sees the sampler's. A
    critic with dropout learns with masks; what is returned, and logged, is what it says without.
    """
    critic, target_critic = networks.critic, networks.target_critic
    assert critic is not None
    assert target_critic is not None
    sample, mask = rollout.sample, rollout.sample.mask
    repeats, special = len(mask) // len(batch), networks.actor.special
    # Chosen once for critic and target critic: a target is compared with values of the same columns.
    columns = choose_columns(critic, special, batch, sample.probabilities.first())
    masks = critic.draw_masks(len(batch), generator)
    # References are read once an example, not once a sample.
    memory = rows.repeat(critic.read(batch, masks), repeats)
    values = critic.masked_values(memory, sample.tokens, actor_states, mask, columns)
    # The actor follows what the critic says without dropout: a mask's noise would be learnt as if it were worth.
    fixed = values.detach()
    if masks is not None:
        with torch.no_grad():
            memory = rows.repeat(critic.read(batch), repeats)
            fixed = critic.masked_values(memory, sample.tokens, actor_states, mask, columns)
    # A function of score and sample alone: it serves the trained critic and the target critic.
    known = known_values(critic, score, special, batch, repeats, sample.tokens, mask, values)
    rewards = rollout.rewards
    if settings.temperature:
        rewards = losses.soft_rewards(rewards, sample.entropies, mask, settings.temperature)
    # Also where targets are bootstrapped: the correction and what is logged need what was really earned.
    returns = losses.returns_to_go(rewards, mask)
    if settings.temporal_difference:
        with torch.no_grad():
            memory = rows.repeat(target_critic.read(batch), repeats)
            # It reads the states that the sampler had: delayed actor and target critic belong together.
            target_values = target_critic.masked_values(memory, sample.tokens, sample.states, mask, columns)
            if known is not None:
                target_values = add_known(target_values, known, special)
            state_values = expected_values(sample.probabilities, target_values)
            targets = losses.temporal_difference_targets(rewards, state_values, mask)
    else:
        targets = returns
    if rollout.further_returns is not None:
        # These others were drawn by the same sampler from the same prefix, so their returns have the same mean.
        targets = losses.several_sample_targets(targets, rollout.further_returns, settings.num_further)
    predicted, penalties = chosen_values_and_penalties(values, sample.tokens)
    if known is not None:
        # Nothing is earned after the end: the network has nothing to learn there, and must not be trained towards it.
        predicted = torch.where(special.is_end(sample.tokens), 0.0, predicted + known.of_tokens(sample.tokens))
        fixed = add_known(fixed, known, special)
    loss = losses.penalised_error(predicted, penalties, targets, mask, settings.variance_penalty)
    # Measured on samples that it has not learnt from yet: this is a forecast, not a fit.
    of_fixed = predicted if masks is None else fixed.of_tokens(sample.tokens)
    unmasked = (field.detach()[mask] for field in (of_fixed, penalties, targets, returns))
    return Evaluation(fixed, returns, loss, _measurements(fixed, *unmasked))


def _measurements(
    values: Values, predicted: Tensor, penalties: Tensor, targets: Tensor, realised: Tensor
) -> dict[str, Tensor]:
    """Return the figures that show whether the critic is ready: TD error, range and spread of Q̂, and how much
    of the variance of the realised return it explains (on samples it has not yet learned from).

    Of the unmasked tokens: all values, those of the sampled tokens, penalties, targets and returns [N].
    """
    minimum, maximum = values.range()
    if not bool(torch.isfinite(minimum) & torch.isfinite(maximum)):
        raise NonFiniteError("a value of the critic is not finite")
    return {
        "td_error": (predicted - targets).square().mean(),
        "q_mean": values.mean(),
        "q_minimum": minimum,
        "q_maximum": maximum,
        "q_variance": penalties.mean() / values.num_tokens,
        "explained_variance": fraction_explained(predicted, realised),
    }


def fraction_explained(predicted: Tensor, realised: Tensor) -> Tensor:
    """1 − Var(G − Q̂) / Var(G) of what was predicted and what was earned [N]; 0 where all earned the same."""
    unexplained, total = (realised - predicted).var(unbiased=False), realised.var(unbiased=False)
    # A batch whose samples all earn the same has no variance to explain; dividing by rounding would tell nonsense.
    return torch.where(total > NOTHING, 1 - unexplained / total.clamp(min=NOTHING), 0.0)


class CriticTraining(RewardMethod):
    """Pre-training of the critic on samples of the frozen actor (step 3 of Algorithm 2)."""

    trains: tuple[str, ...] = ("critic",)

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        """Return the critic's loss; the sampling actor is the frozen actor, so its states serve both critics."""
        repeats = self.settings.samples
        actor = networks.actor
        with torch.no_grad():
            # As the method will draw them: the critic is to learn the values of the policy that it will judge.
            masks = draw_reward_masks(actor, batch, self.settings, generator)
            memory = rows.repeat(actor.encode(batch.sources, batch.source_mask, masks), repeats)
        repeated = batch.repeat(repeats)
        rollout = roll_out(
            actor,
            memory,
            repeated,
            self.score,
            self.shaping,
            generator,
            num_further=self.settings.num_further,
            temperature=self.settings.temperature,
        )
        evaluation = evaluate_policy(
            networks, batch, rollout, rollout.sample.states, self.settings, self.score, generator
        )
        measurements = {"critic_loss": evaluation.loss.detach()}
        return Outcome(evaluation.loss, measurements | evaluation.measurements | rollout.measurements(repeated))
