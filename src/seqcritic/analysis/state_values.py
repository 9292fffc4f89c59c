"""A value function V(prefix) that is no critic, such as the value head of a PPO run, under diagnosis.

It values states, not tokens. Two things can be made of it all the same: advantages (Schulman et al. 2016),

    A_t = Σ_{l≥0} λ^l δ_{t+l},   δ_t = r_t + V(Ŷ_1..t) − V(Ŷ_1..t-1)

and, where the score of a prefix is known, values of tokens by looking one step ahead:

    Q̂(a; Ŷ_1..t-1) = r(a) + V(Ŷ_1..t-1 a),   V after the end = 0

A critic of states (contracts/critic.py) is diagnosed as the value function that it is.

Shapes: B sequences, T tokens, A tokens that are compared at one step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import StateValueCritic
from seqcritic.contracts.score import Score
from seqcritic.errors import NonFiniteError, UserError
from seqcritic.methods.rollout import prefix_scores
from seqcritic.methods.token_values import ValuesOf


class StateValues(ABC):
    """The one method by which `diagnose` asks a value function of anybody's."""

    @abstractmethod
    def values(self, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
        """V [B, T] along tokens [B, T]: entry t is of what is known *before* token t, tokens 0..t-1 of the answer.

        It forecasts what is still to be earned: with shaping the rewards from token t on, without it the score of the
        whole answer. Nothing is meant where the mask [B, T] is False. `batch` has the sources, and the references for
        a function that reads them, a row for each of the B.
        """


class ValuesOfCritic(StateValues):
    """The value function of a critic of states, beside the actor whose states it may read."""

    def __init__(self, critic: StateValueCritic, actor: Actor) -> None:
        self._critic, self._actor = critic, actor

    @torch.no_grad()
    def values(self, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
        """V [B, T], from the references where the critic reads them."""
        states = tokens.new_zeros(*tokens.shape, 1)
        if self._critic.reads_actor_states:
            memory = self._actor.encode(batch.sources, batch.source_mask)
            _, states = self._actor.features(memory, tokens, mask)
        return self._critic.masked_state_values(self._critic.read(batch), tokens, states, mask).padded()[:, :, 0]


def ask(state_values: StateValues, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
    """Return V [B, T], 0 outside the mask, or say what is wrong with it."""
    found = state_values.values(tokens, mask, batch)
    if found.shape != tokens.shape:
        raise UserError(
            f"critic: values of {type(state_values).__name__} have the shape {list(found.shape)}; give one for each of "
            f"the tokens, {list(tokens.shape)}"
        )
    # Masked before the check: outside nothing is meant, and it may well be NaN.
    known = torch.where(mask, found.detach().to(tokens.device), 0.0)
    if not bool(torch.isfinite(known).all()):
        raise NonFiniteError("a value of the critic is not finite")
    return known


def require_causal(state_values: StateValues, tokens: Tensor, mask: Tensor, batch: Batch, num_tokens: int) -> None:
    """Refuse values before a token that depend on the token: as a baseline they would bias every estimate."""
    # The last token of each row: a change there alters nothing that is known before it.
    last = (mask.sum(dim=1) - 1)[:, None]
    other = tokens.scatter(1, last, (tokens.gather(1, last) + 1) % num_tokens)
    one, two = (ask(state_values, given, mask, batch).gather(1, last) for given in (tokens, other))
    if not torch.allclose(one, two, rtol=1e-3, atol=1e-5):
        raise UserError(
            f"critic: the values of {type(state_values).__name__} before a token change with that token; entry t is of "
            "what is known before token t, so shift them by one"
        )


def look_ahead(state_values: StateValues, score: Score, special: SpecialTokens, shaping: bool) -> ValuesOf:
    """Return a function that values single tokens by the states that they lead to."""

    def values_of(batch: Batch, prefixes: Tensor, steps: Tensor, tokens: Tensor) -> Tensor:
        repeats = tokens.shape[1]
        many, ends = batch.repeat(repeats), steps.repeat_interleave(repeats)[:, None]  # [B · A, 1]
        positions = torch.arange(prefixes.shape[1] + 1, device=tokens.device)
        # One place more: the state after a token at the last position is asked for at the position behind it.
        given = torch.nn.functional.pad(prefixes, (0, 1), value=special.padding).repeat_interleave(repeats, dim=0)
        # Each prefix with one candidate token at its end; what the sample had after it is gone.
        given = given.scatter(1, ends, tokens.view(-1, 1)).where(positions <= ends, special.padding)
        # True up to and including the asked position, whose own token is padding: entry t does not see token t.
        following = ask(state_values, given, positions <= ends + 1, many).gather(1, ends + 1)
        scores = prefix_scores(score, special, given, positions <= ends, many).to(following.dtype)
        before, after = scores.gather(1, ends), scores.gather(1, ends + 1)
        is_end = special.is_end(tokens.view(-1, 1))  # [B · A, 1]
        # Without shaping the end earns the whole score, and V of all others is a forecast of it.
        worth = (
            after - before + torch.where(is_end, 0.0, following) if shaping else torch.where(is_end, after, following)
        )
        return worth.view(tokens.shape)

    return values_of
