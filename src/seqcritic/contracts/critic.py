"""The critic's contract: Q̂(a; Ŷ_1..t-1, Y) for every token a, from a network that reads the reference answer.

`encode` reads references once, `masked_values` gives the values of all tokens along given predictions. DAgger, whose
expert is the critic, asks for values one token at a time; a critic that can step does it faster than the default here.

Values are of all tokens, or of given columns and the rest (tensors/values.py): a critic with `num_columns` is asked for
the columns that methods/columns.py chooses, any other for all tokens.

A `StateValueCritic` values prefixes alone, V(Ŷ_1..t-1, Y). That is a value which all next tokens share: it serves as a
baseline and learns by the same policy evaluation, but no actor can follow it.

Shapes: B rows, U reference tokens, T tokens of a prediction, V vocabulary, H the actor's view, N unmasked tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, Masks, PageNetwork
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.parts import CriticSettings, OwnCriticSettings, ResidualOn, construct
from seqcritic.errors import UserError
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns, Values

Memory: TypeAlias = Any
State: TypeAlias = Any


class Prefix(NamedTuple):
    """The state of a critic that reads a prediction from its beginning at every step."""

    tokens: Tensor  # [B, t], those consumed, and a last one that is not yet known
    views: Tensor  # [B, t, H]


class Held:
    """A pointer to a network that belongs to somebody else. Deep copies of the holder keep the same network."""

    def __init__(self, network: Any) -> None:
        self.network = network

    def __deepcopy__(self, memo: dict[int, Any]) -> Held:
        # A target critic is a deep copy; the actor whose vectors it reads must stay the one actor.
        return self


class Critic(nn.Module, ABC):
    """Values of all tokens at every step of a prediction."""

    values_tokens: ClassVar[bool] = True
    """Whether it tells tokens apart; if not, methods that follow values of tokens refuse it."""
    reads_actor_states: bool
    """Whether `actor_states` are read; a critic that reads none needs no actor with views."""
    residual_on: ResidualOn = "none"
    """What the network's values are added to: what is known of every next token (methods/lookahead.py)."""
    num_columns: int | None = None
    """How many tokens it is asked to value one by one, all others together; None: it is asked for all tokens."""
    copies_actor: ClassVar[bool] = False
    """Whether it holds a copy of the actor as it was before training: then it is built of a fresh one."""
    Settings: ClassVar[type[CriticSettings] | None] = None
    """The section `critic` of a registered kind; None: `arguments` are those of its constructor."""

    @classmethod
    def build(cls, settings: CriticSettings, actor: Actor, generator: torch.Generator) -> Self:
        """Build the critic that settings describe for the tokens and states of an actor, with fresh weights."""
        assert isinstance(settings, OwnCriticSettings), "a kind with Settings overrides this"
        return construct(cls, settings.arguments, generator)

    def spec(self) -> dict[str, Any] | None:
        """Arguments of the constructor, as JSON, that build this critic again; None: it must be passed again."""
        return None

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> Masks | None:
        """What dropout keeps of so many rows; None, nothing drawn, for a critic without dropout."""
        return None

    def read(self, batch: Batch, masks: Masks | None = None) -> Memory:
        """The memory of a batch: of its references, unless a kind of critic reads something else."""
        return self.encode(batch.references, batch.reference_mask, masks)

    @abstractmethod
    def encode(self, references: Tensor, mask: Tensor, masks: Masks | None = None) -> Memory:
        """Read the reference answers [B, U] with their mask; values from this memory drop the units of `masks`."""

    @abstractmethod
    def masked_values(
        self, memory: Memory, predictions: Tensor, actor_states: Tensor, mask: Tensor, columns: Columns | None = None
    ) -> Values:
        """Values of all tokens, or of columns and rest, where the mask [B, T] of predictions [B, T] is True.

        Entry t values every token at position t, given tokens 0..t-1. `actor_states` [B, T, H]: entry t is the actor's
        view of what it knows before token t.
        """

    def values(
        self, memory: Memory, predictions: Tensor, actor_states: Tensor, columns: Columns | None = None
    ) -> Tensor:
        """Values [B, T, V] at every position of predictions [B, T]; without a column, a token has that of the rest."""
        everywhere = torch.ones_like(predictions, dtype=torch.bool)
        return self.masked_values(memory, predictions, actor_states, everywhere, columns).padded()

    def start(self, memory: Memory, views: Tensor) -> State:
        """The state before the first token, with the actor's views [B, H]."""
        # Values before a token never depend on it, so that any id may stand in for the one not yet chosen.
        unknown = torch.zeros(len(views), 1, dtype=torch.int64, device=views.device)
        return Prefix(unknown, views[:, None])

    def step(self, memory: Memory, state: State, tokens: Tensor, views: Tensor) -> State:
        """The state after consuming tokens [B], with the actor's views [B, H] of what follows them."""
        # The new token goes before the stand-in, which stays last: [B, t] becomes [B, t + 1].
        known = torch.cat([state.tokens[:, :-1], tokens[:, None], state.tokens[:, -1:]], dim=1)
        return Prefix(known, torch.cat([state.views, views[:, None]], dim=1))

    def next_values(self, memory: Memory, state: State, columns: Columns | None = None) -> Values:
        """Values of all next tokens, or of columns and rest, one row for each of the B sequences of a state."""
        # The whole prefix is read again at every step: right for any critic, slow for long answers.
        everywhere = torch.ones_like(state.tokens, dtype=torch.bool)
        found = self.masked_values(memory, state.tokens, state.views, everywhere, columns)
        # Of [B, t, V] only the last step is new.
        return Values.of_rows(found.packed.padded()[:, -1], found.columns)

    def attention(self, memory: Memory, tokens: Tensor, actor_states: Tensor) -> Tensor | None:
        """Weights [B, T, U] with which position t of tokens [B, T] looked at the reference; None: not known."""
        return None

    def for_page(self) -> PageNetwork | None:
        """What a page needs to compute the critic in the browser; None: no page knows its equations."""
        return None

    def initialise_from(self, actor: Actor) -> None:
        """Begin with the actor's weights."""
        raise UserError(f"critic.from_actor: {type(self).__name__} cannot begin with the actor's weights; set it false")


class StateValueCritic(Critic):
    """One value V(Ŷ_1..t-1, Y) at every step of a prediction, before its token is known."""

    values_tokens = False
    num_tokens: int
    """V of the actor."""

    @abstractmethod
    def masked_state_values(self, memory: Memory, predictions: Tensor, actor_states: Tensor, mask: Tensor) -> Packed:
        """Values [N, 1] of the states before the tokens of predictions [B, T] where the mask [B, T] is True.

        Entry t must not depend on token t: as a baseline it would bias the gradient.
        """

    def masked_values(
        self, memory: Memory, predictions: Tensor, actor_states: Tensor, mask: Tensor, columns: Columns | None = None
    ) -> Values:
        """Values of tokens that are all the value of their state."""
        found = self.masked_state_values(memory, predictions, actor_states, mask)
        # Σ_a p(a) V = V: with one value for all tokens every sum of the methods is that of a baseline of states.
        return Values.of_states(found, self.num_tokens)
