"""The gradient estimators under diagnosis, all from the same samples of the present actor.

With returns G_t = Σ_{τ≥t} r_τ and advantages of any baseline b_t that does not depend on ŷ_t,

    reinforce, reinforce-critic   Σ_t d log p(ŷ_t)/dθ (G_t − b_t),   b_t = w · s_t + c,   b_t = Σ_a p(a) Q̂(a)
    actor-critic                  Σ_t Σ_a dp(a)/dθ Q̂(a)
    corrected                     Σ_t Σ_a dp(a)/dθ Q̂(a) + d log p(ŷ_t)/dθ (G_t − Q̂(ŷ_t))

The last is unbiased for any critic, since E[d log p(ŷ_t)/dθ Q̂(ŷ_t)] = Σ_a dp(a)/dθ Q̂(a): what the first term owes to
the critic's errors the second takes back. It is actor-critic with `method.correction=1`; it shows the truth with little
noise where the critic is good, and its second term alone is minus the bias of actor-critic.

A function V of prefixes (state_values.py), or a critic of states, has, in place of the last two and with V_t as the
baseline of reinforce-critic,

    gae                           Σ_t d log p(ŷ_t)/dθ A_t,   A_t = Σ_{l≥0} λ^l (r_{t+l} + V_{t+l+1} − V_{t+l})

which is what a first step of PPO follows; λ = 1 is reinforce-critic.

Shapes: B examples, T tokens, V vocabulary, H actor state, P weights of the actor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from seqcritic.analysis.state_values import StateValues, ValuesOfCritic, ask
from seqcritic.contracts.actor import Actor, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import Critic, StateValueCritic
from seqcritic.contracts.score import Score
from seqcritic.methods import losses
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.lookahead import all_values
from seqcritic.methods.rollout import Rollout, roll_out
from seqcritic.models.baseline import LinearBaseline
from seqcritic.tensors import rows

ACTOR_CRITIC = "actor-critic"
CORRECTED = "corrected"
UNBIASED = ("reinforce", "reinforce-critic", CORRECTED)
ESTIMATORS = ("reinforce", "reinforce-critic", ACTOR_CRITIC, CORRECTED)
GAE = "gae"
GAE_LAMBDA = 0.95  # where no method says
STATE_ESTIMATORS = ("reinforce", "reinforce-critic", GAE)
TOKENS_PER_WEIGHT = 50  # of the baseline


@dataclass(frozen=True)
class Subject:
    """What is diagnosed: an actor, its critic, and how its samples are rewarded."""

    actor: Actor
    critic: Critic | StateValues
    score: Score
    shaping: bool
    gae_lambda: float = GAE_LAMBDA

    @cached_property
    def state_values(self) -> StateValues | None:
        """The function of prefixes that is diagnosed; None: a critic of tokens is."""
        if isinstance(self.critic, StateValueCritic):
            return ValuesOfCritic(self.critic, self.actor)
        return self.critic if isinstance(self.critic, StateValues) else None

    @property
    def token_critic(self) -> Critic:
        """The critic of tokens that is diagnosed."""
        assert isinstance(self.critic, Critic), "there is no function of prefixes"
        return self.critic

    @property
    def estimators(self) -> tuple[str, ...]:
        """The names of what can be made of the critic."""
        return ESTIMATORS if self.state_values is None else STATE_ESTIMATORS

    @property
    def followed(self) -> str:
        """The estimator that trusts the critic, and so has its bias."""
        return ACTOR_CRITIC if self.state_values is None else GAE

    @property
    def gae(self) -> str:
        """What a title says of the advantages that are measured; nothing of a critic of tokens."""
        return "" if self.state_values is None else f", GAE of λ = {self.gae_lambda:g}"

    @cached_property
    def weights(self) -> list[Tensor]:
        """The actor's weights that are trained; frozen ones, as below an adapter, have no gradient."""
        return [parameter for parameter in self.actor.parameters() if parameter.requires_grad]

    @property
    def num_weights(self) -> int:
        """P, the length of a gradient."""
        return sum(parameter.numel() for parameter in self.weights)


def sample_examples(subject: Subject, batch: Batch, memory: Memory, generator: torch.Generator) -> Rollout:
    """Draw one rewarded sample for every example."""
    return roll_out(subject.actor, rows.detach(memory), batch, subject.score, subject.shaping, generator)


def draw_gradients(
    subject: Subject, baseline: LinearBaseline, batches: Sequence[Batch], generator: torch.Generator
) -> dict[str, Tensor]:
    """Make one draw: one sample for every example, and from it each estimator's gradient [P] of their mean return."""
    num_examples = sum(len(batch) for batch in batches)
    # A single 0 that takes the size, dtype and device of the first gradient.
    totals = {name: torch.zeros(()) for name in subject.estimators}
    for batch in batches:
        # By examples, as the last batch may be smaller: the mean of all of them, not of the batches.
        weight = len(batch) / num_examples
        for name, gradient in _gradients(subject, baseline, batch, generator).items():
            totals[name] = totals[name] + weight * gradient
    return totals


def _gradients(
    subject: Subject, baseline: LinearBaseline, batch: Batch, generator: torch.Generator
) -> dict[str, Tensor]:
    """Return the estimates [P] of the gradient of the mean return of one batch."""
    actor = subject.actor
    memory = actor.encode(batch.sources, batch.source_mask)
    rollout = sample_examples(subject, batch, memory, generator)
    tokens, mask = rollout.sample.tokens, rollout.sample.mask
    # Scored again, now with a graph, from the same memory: dropout is off, so it is the policy that drew.
    logits, states = actor.score(memory, tokens)
    returns = losses.returns_to_go(rollout.rewards, mask)
    token_log_probabilities = losses.gather_chosen(torch.log_softmax(logits, dim=2), tokens)

    def reinforce(given: Tensor, baselines: Tensor) -> Tensor:
        return _ascent(losses.reinforce_loss(token_log_probabilities, given, baselines, mask), subject)

    found = {"reinforce": reinforce(returns, baseline(states).detach())}
    if subject.state_values is not None:
        with torch.no_grad():
            state_values = ask(subject.state_values, tokens, mask, batch).to(returns.dtype)
        advantages = losses.generalised_advantages(rollout.rewards, state_values, mask, subject.gae_lambda)
        return found | {
            "reinforce-critic": reinforce(returns, state_values),
            # Advantages have their baseline in them.
            GAE: reinforce(advantages, torch.zeros_like(advantages)),
        }
    with torch.no_grad():
        critic = subject.token_critic
        # As in training: what the actor would say first decides, with the references, which tokens have columns.
        columns = choose_columns(critic, actor.special, batch, rollout.sample.probabilities.first())
        values = all_values(critic, subject.score, actor.special, batch, tokens, mask, states, columns)
        expected = losses.expected_values(torch.softmax(logits, dim=2), values)
    # The sum over all tokens: only the prefixes are drawn.
    followed = _ascent(losses.actor_critic_loss(torch.softmax(logits, dim=2), values, mask), subject)
    return found | {
        "reinforce-critic": reinforce(returns, expected),
        ACTOR_CRITIC: followed,
        # The first term's gradient is known already, and gradients add up as losses do.
        CORRECTED: followed + reinforce(returns, losses.gather_chosen(values, tokens)),
    }


def _ascent(loss: Tensor, subject: Subject) -> Tensor:
    """Return the direction [P] in which a loss falls, for all trained weights of the actor in a row."""
    # The graph is kept for the other estimators of the draw; a weight without a gradient has zeros, so that all have P.
    found = torch.autograd.grad(loss, subject.weights, retain_graph=True, materialize_grads=True)
    return -torch.cat([gradient.flatten() for gradient in found])


@torch.no_grad()
def fit_baseline(subject: Subject, batches: Sequence[Batch], generator: torch.Generator) -> LinearBaseline:
    """Return the linear baseline b_t = w · s_t + c of least squares for samples of these examples.

    A run with a critic has no linear baseline. This is the one that REINFORCE would have learnt in the end.
    """
    actor = subject.actor
    # These samples are not used again: a baseline that has seen the sample it is subtracted from would bias it.
    inputs, targets, num_tokens, num_wanted = [], [], 0, 1
    # Few examples are drawn again and again, until there are enough tokens for so many weights.
    while num_tokens < num_wanted:
        for batch in batches:
            memory = actor.encode(batch.sources, batch.source_mask)
            rollout = sample_examples(subject, batch, memory, generator)
            mask = rollout.sample.mask
            inputs.append(rollout.sample.states[mask])
            targets.append(losses.returns_to_go(rollout.rewards, mask)[mask])
            num_tokens += len(targets[-1])
            # Only the first states tell how many weights there are: + 1 for the constant.
            num_wanted = TOKENS_PER_WEIGHT * (inputs[-1].shape[1] + 1)
    # In float64: tens of thousands of tokens are summed, and states may be nearly dependent, which gelsd can take.
    states_NH, returns_N = torch.cat(inputs).cpu().double(), torch.cat(targets).cpu().double()
    design = torch.cat([states_NH, torch.ones_like(states_NH[:, :1])], dim=1)
    solution = torch.linalg.lstsq(design, returns_N[:, None], driver="gelsd").solution[:, 0]
    baseline = LinearBaseline(states_NH.shape[1]).to(inputs[0].dtype)
    baseline.linear.weight[0] = solution[:-1]
    baseline.linear.bias[0] = solution[-1]
    return baseline.to(actor.device)
