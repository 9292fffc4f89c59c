"""A recurrent critic of states, V(Ŷ_1..t-1, Y): the critic of the paper with one value in place of one for each token.

It is what PPO calls a value function, but one that reads the reference answer. Without `reads_reference` it reads
nothing of Y, as everybody else's: the two tell what the privilege brings. It serves ppo and reinforce-critic; a method
that follows values of tokens refuses it.

Shapes: B examples, U reference tokens, T tokens, N unmasked tokens, H actor state.
"""

from __future__ import annotations

from typing import ClassVar, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.critic import StateValueCritic
from seqcritic.contracts.parts import ActorSettings, CriticSettings, refuse_values_of_tokens
from seqcritic.contracts.registry import register_critic
from seqcritic.models.gru.actors_vectors import ActorsVectors
from seqcritic.models.gru.attention import EncoderMemory
from seqcritic.models.gru.decoder import Decoder
from seqcritic.models.gru.dropout import Masks
from seqcritic.models.gru.encoder import BidirectionalEncoder
from seqcritic.models.gru.initialise import initialise
from seqcritic.models.gru.output_layer import LinearOutputLayer
from seqcritic.models.gru.settings import GruCriticSettings
from seqcritic.tensors.packed import Packed


class GruStateCriticSettings(GruCriticSettings):
    """Sizes of the recurrent critic of states."""

    values_tokens: ClassVar[bool] = False
    kind: str = "gru-state"
    reads_reference: bool = Field(True, description="read the reference answer; false: the prediction alone")

    def check(self, actor: ActorSettings, task: str) -> None:
        """Refuse what is of values of tokens."""
        refuse_values_of_tokens(self)
        if self.tied or self.output_width is not None:
            raise ValueError("critic.kind: gru-state reads out one value; leave tied false and output_width null")


@register_critic("gru-state")
class RecurrentStateCritic(StateValueCritic):
    """One value at every step of a prediction."""

    Settings = GruStateCriticSettings

    @classmethod
    def build(cls, settings: CriticSettings, actor: Actor, generator: torch.Generator) -> Self:
        """Build the critic that settings describe for the tokens and states of an actor, with fresh weights."""
        assert isinstance(settings, GruStateCriticSettings)
        vectors = ActorsVectors(actor) if settings.embeddings == "actor" else None
        return cls(settings, actor.num_tokens, actor.state_size, generator, vectors)

    def __init__(
        self,
        settings: GruStateCriticSettings,
        num_tokens: int,
        actor_state_size: int,
        generator: torch.Generator,
        vectors: ActorsVectors | None = None,
    ) -> None:
        super().__init__()
        self.settings, self.num_tokens = settings, num_tokens
        self.reads_actor_states = settings.reads_actor_states
        shared = nn.Embedding(num_tokens, settings.embedding) if vectors is None else vectors
        self.encoder = BidirectionalEncoder(shared, settings.hidden)
        extra = actor_state_size if settings.reads_actor_states else 0
        self.decoder = Decoder(shared, settings.hidden, self.encoder.size, settings.attention, extra, settings.dropout)
        # Replaced before weights are drawn, so that no number is spent on the layer of all tokens.
        self.decoder.output_layer = LinearOutputLayer(settings.hidden + self.encoder.size, 1)
        initialise(self, settings.initial_range, generator)

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> Masks | None:
        """Return what dropout keeps of so many rows; None, nothing drawn, for a critic without dropout."""
        return self.decoder.draw_masks(num_rows, generator)

    def encode(self, references: Tensor, mask: Tensor, masks: Masks | None = None) -> EncoderMemory:
        """Read the reference answers [B, U] with their mask, or one and the same token in place of any."""
        if not self.settings.reads_reference:
            # Of one position attention makes the same context at every step: the network keeps its size and learns
            # nothing of Y.
            references, mask = torch.zeros_like(references[:, :1]), torch.ones_like(mask[:, :1])
        return self.decoder.encode(self.encoder, references, mask, masks)

    def masked_state_values(
        self, memory: EncoderMemory, predictions: Tensor, actor_states: Tensor, mask: Tensor
    ) -> Packed:
        """Return values [N, 1] of the states before the unmasked tokens of predictions [B, T]."""
        extra = actor_states.detach() if self.reads_actor_states else None
        return self.decoder.read(self.decoder.features(memory, predictions, extra, mask)[0])

    def attention(self, memory: EncoderMemory, tokens: Tensor, actor_states: Tensor) -> Tensor:
        """Return the attention [B, T, U] at every step of given tokens [B, T]."""
        return self.decoder.attend(memory, tokens, actor_states if self.reads_actor_states else None)
