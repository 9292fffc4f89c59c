"""DAgger (Ross, Gordon and Bagnell 2010) with the critic as the expert, to whom the paper's related work compares it.

    ŷ_t = e_t with probability β_i = p^(i-1), else ŷ_t ~ p(· | Ŷ_1..t-1);   e_t = argmax_a Q̂(a; Ŷ_1..t-1, Y)
    loss = −Σ_t log p(e_t | Ŷ_1..t-1)  −  λ_LL Σ_t log p(y_t | Y_1..t-1)

The expert sees the reference and says what to do next after any prefix, right or wrong, so that no expert for the
score has to be written by hand. Q̂ values the actor's own policy, hence the expert is the actor improved by one greedy
step. The critic goes on learning from the same rollouts: its bootstrap takes the actor's probabilities whoever chose
the tokens. There is no delayed actor.

DAgger trains a new policy on the data of all iterations so far; here the actor goes on learning from the states of the
present update, which its analysis allows too (any no-regret learner). An iteration is a fixed fraction of the updates.

Shapes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

from functools import partial

import torch
from pydantic import Field
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.method import Traits
from seqcritic.contracts.method_registry import register_method
from seqcritic.contracts.networks import CRITIC, TARGET_CRITIC, Networks
from seqcritic.decoding.sampling import Sample, collect
from seqcritic.draws import choose, draw_numbers, draw_uniform
from seqcritic.methods.actor_critic import ActorCritic
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.masked_losses import likelihood_loss
from seqcritic.methods.rollout import Draw
from seqcritic.settings.base import Fraction, Positive, Section
from seqcritic.tensors import rows as all_rows
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns, Values, as_packed


class DaggerSettings(Section):
    """Of `dagger`."""

    iterations: Positive = Field(20, description="N: equal parts of the updates, each with its own β")
    decay: Fraction = Field(
        0.0, description="p of β_i = p^(i-1), how often the expert chooses the token; 0: in the first iteration only"
    )


def expert_probability(settings: DaggerSettings, progress: float) -> float:
    """Return β_i = p^(i-1) of the iteration i = 1..N that `progress` falls into."""
    # 0.0 ** 0 is 1: with p = 0 the first iteration is still the expert's.
    return settings.decay ** int(settings.iterations * progress)


@register_method
class Dagger(ActorCritic):
    """The actor imitates the token of the highest value at the states that expert and actor visit."""

    name = "dagger"
    Settings = DaggerSettings
    traits = Traits(2.9, 3.6, follows_values=True)
    needs = (CRITIC, TARGET_CRITIC)
    own: DaggerSettings

    def actor_loss(self, logits: Packed, values: Values, mask: Tensor) -> Tensor:
        """Return −Σ_t log p(argmax_a Q̂(a)) from packed logits [N, V] and the critic's values."""
        # Of tokens that share the value of the rest the one that the actor prefers: to the critic they are one.
        return likelihood_loss(logits, values.packed.spread(values.best(logits.detach())), mask)

    def roll_in(self, networks: Networks, batch: Batch, progress: float) -> Draw | None:
        """Return the mixture of expert and actor; None, the actor alone, where β = 0."""
        probability = expert_probability(self.own, progress)
        # Late iterations with β = 0 sample like any other method, with all that is known of own samples.
        if probability == 0:
            return None
        assert networks.critic is not None
        with torch.no_grad():
            memory = networks.critic.read(batch)
            memory = all_rows.repeat(memory, self.settings.samples)
        return partial(
            sample_mixture, critic=networks.critic, critic_memory=memory, batch=batch, probability=probability
        )


@torch.no_grad()
def sample_mixture(
    actor: Actor,
    memory: Memory,
    maximum_lengths: Tensor,
    generator: torch.Generator,
    critic: Critic,
    critic_memory: Memory,
    batch: Batch,
    probability: float,
) -> Sample:
    """Take each token from the expert with this probability, else draw it from the actor, up to maximum_lengths [B]
    tokens.

    The actor's random numbers are those of plain sampling. `batch`, not repeated, tells a critic with columns which
    tokens are good ones.
    """
    num_steps = int(maximum_lengths.max())
    numbers = draw_numbers(generator, num_steps, len(maximum_lengths)).to(maximum_lengths.device)
    # A second stream of numbers: the actor's draws stay those of plain sampling whatever the coins say.
    asks_expert = (
        draw_uniform(generator, num_steps, len(maximum_lengths)).to(maximum_lengths.device) < probability
    )  # [T, B]
    state = actor.start(memory)
    critic_state = critic.start(critic_memory, actor.view(state))
    rows = torch.arange(len(maximum_lengths), device=maximum_lengths.device)
    columns: Columns | None = None
    steps: list[tuple[Tensor, ...]] = []
    for step in range(num_steps):
        distribution = torch.softmax(actor.logits(state), dim=1)
        # The first distribution stands for all: columns must not change while a state of the critic is carried along.
        if step == 0:
            columns = choose_columns(critic, actor.special, batch, distribution)
        # Ties, as among tokens that share the value of the rest, go to what the actor prefers.
        expert = critic.next_values(critic_memory, critic_state, columns).best(as_packed(distribution))
        tokens = torch.where(asks_expert[step, rows], expert, choose(distribution, numbers[step, rows]))
        token_log_probabilities = distribution.gather(1, tokens[:, None])[:, 0].log()
        entropies = torch.special.entr(distribution).sum(dim=1)
        steps.append((rows, tokens, distribution, actor.view(state), entropies, token_log_probabilities))
        # By the token alone, whoever chose it, as in `sample`; the critic's state leaves the batch with the actor's.
        going = ~actor.special.is_end(tokens) & (maximum_lengths[rows] > step + 1)
        if not bool(going.any()):
            break
        rows, tokens = rows[going], tokens[going]
        memory, critic_memory, state, critic_state = all_rows.select(
            (memory, critic_memory, state, critic_state), going
        )
        state = actor.step(memory, state, tokens)
        critic_state = critic.step(critic_memory, critic_state, tokens, actor.view(state))
    return collect(steps, len(maximum_lengths), actor.special.padding)
