"""The recurrent critic of the paper, behind the critic's contract.

It has the actor's shape: its encoder reads Y with its end token, its decoder reads the prediction. Encoder and
decoder share one embedding, for both read the same language. Optionally each transition also reads the actor's
state that produces the next token, detached: no gradient flows from the critic into the actor. (Before the first
token that state is a learned constant, so the first values know Y but not X.)

With `critic.columns` the output layer has one row more, the value of the rest: where columns are asked for, it is
applied to their rows and that one alone.

Shapes: B examples, T tokens, V vocabulary, H actor state, C columns, F features.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, PageNetwork
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.parts import CriticSettings
from seqcritic.contracts.registry import register_critic
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.actors_vectors import ActorsVectors
from seqcritic.models.gru.attention import EncoderMemory
from seqcritic.models.gru.decoder import Decoder, State
from seqcritic.models.gru.dropout import Masks
from seqcritic.models.gru.encoder import BidirectionalEncoder
from seqcritic.models.gru.initialise import initialise
from seqcritic.models.gru.settings import GruCriticSettings
from seqcritic.models.products import linear
from seqcritic.tensors.values import Columns, Values

OUTPUT_LAYER_SCALE = 0.1  # of the actor's output layer, where the critic begins with its weights


@register_critic("gru")
class RecurrentCritic(Critic):
    """Values of all tokens at every step of a prediction."""

    Settings = GruCriticSettings

    @classmethod
    def build(cls, settings: CriticSettings, actor: Actor, generator: torch.Generator) -> Self:
        """Build the critic that settings describe for the tokens and states of an actor, with fresh weights."""
        assert isinstance(settings, GruCriticSettings)
        vectors = ActorsVectors(actor) if settings.embeddings == "actor" else None
        return cls(settings, actor.num_tokens, actor.state_size, generator, vectors)

    def __init__(
        self,
        settings: GruCriticSettings,
        num_tokens: int,
        actor_state_size: int,
        generator: torch.Generator,
        vectors: ActorsVectors | None = None,
    ) -> None:
        """Make the critic with fresh weights; `vectors`: of tokens, where the settings ask for the actor's."""
        super().__init__()
        self.settings = settings
        self.reads_actor_states = settings.reads_actor_states
        self.residual_on = settings.residual_on
        self.num_columns = settings.columns
        shared = nn.Embedding(num_tokens, settings.embedding) if vectors is None else vectors
        self.encoder = BidirectionalEncoder(shared, settings.hidden)
        self.decoder = Decoder(
            shared,
            settings.hidden,
            self.encoder.size,
            settings.attention,
            extra_size=actor_state_size if settings.reads_actor_states else 0,
            dropout=settings.dropout,
            # The actor's vectors are read out through as well: what they spare is a matrix [V, F] of the critic's own.
            tied=settings.tied or vectors is not None,
            output_width=settings.output_width,
        )
        # Behind all others, whose initial weights so stay those of a critic without it.
        self.rest = None if settings.columns is None else nn.Linear(self.decoder.output_layer.width, 1)
        initialise(self, settings.initial_range, generator)

    @torch.no_grad()
    def initialise_from(self, actor: Actor) -> None:
        """Take the actor's weights, where both sides of the task have the same tokens.

        An actor that has learnt which source token comes next so becomes a critic that knows which token of the
        reference does, though not yet what it is worth: its output layer is a tenth of the actor's, which puts values
        some tenths apart. The critic has one embedding E where the actor has two, E and E': the gates W' of tokens
        become W = argmin ‖E Wᵀ − E' W'ᵀ‖, the same gates exactly if there are no more tokens than numbers in an
        embedding. The actor's states are at first ignored.
        """
        assert isinstance(actor, RecurrentActor), "the settings ask for the same sizes"
        self.encoder.load_state_dict(actor.encoder.state_dict())
        # All but token_gates, for which the embedding is another, and extra_gates, which no actor has.
        for part in ("context_gates", "state_gates", "attention", "output_layer"):
            getattr(self.decoder, part).load_state_dict(getattr(actor.decoder, part).state_dict())
        self.decoder.initial.copy_(actor.decoder.initial)
        self.decoder.output_layer.multiply(OUTPUT_LAYER_SCALE)
        gates = actor.decoder.embedding.weight.double() @ actor.decoder.token_gates.weight.double().T
        # In float64: the pseudo-inverse of a table whose rows lie close loses many digits.
        own_gates = torch.linalg.pinv(self.decoder.embedding.weight.double()) @ gates
        self.decoder.token_gates.weight.copy_(own_gates.T)
        self.decoder.token_gates.bias.copy_(actor.decoder.token_gates.bias)
        if self.decoder.extra_gates is not None:
            self.decoder.extra_gates.weight.zero_()
        if self.rest is not None:
            # The mean of all tokens: at first nothing tells the others from those with a column.
            self.rest.weight.copy_(self.decoder.output_layer.weight.mean(dim=0, keepdim=True))
            self.rest.bias.copy_(self.decoder.output_layer.bias.mean())

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> Masks | None:
        """Return what dropout keeps of so many rows; None, nothing drawn, for a critic without dropout."""
        return self.decoder.draw_masks(num_rows, generator)

    def encode(self, references: Tensor, mask: Tensor, masks: Masks | None = None) -> EncoderMemory:
        """Read the reference answers [B, T] with their mask; values from this memory drop the units of `masks`."""
        return self.decoder.encode(self.encoder, references, mask, masks)

    def masked_values(
        self,
        memory: EncoderMemory,
        predictions: Tensor,
        actor_states: Tensor,
        mask: Tensor,
        columns: Columns | None = None,
    ) -> Values:
        """Return the values at the positions where the mask [B, T] is True; elsewhere nothing is computed."""
        # A gradient through these would train the actor on the critic's loss.
        extra = actor_states.detach() if self.reads_actor_states else None
        features, _ = self.decoder.features(memory, predictions, extra, mask)
        return Values(features._replace(rows=self._read(features.rows, columns)), columns)

    def start(self, memory: EncoderMemory, views: Tensor) -> State:
        """Return the state before the first token, which knows nothing of the actor's."""
        return self.decoder.start(memory)

    def step(self, memory: EncoderMemory, state: State, tokens: Tensor, views: Tensor) -> State:
        """Return the state after consuming tokens [B] and the actor's states [B, H] after them."""
        return self.decoder.step(memory, state, tokens, views if self.reads_actor_states else None)

    def next_values(self, memory: EncoderMemory, state: State, columns: Columns | None = None) -> Values:
        """Return the values after a state of B sequences."""
        return Values.of_rows(self._read(self.decoder.features_of(state), columns), columns)

    def _read(self, features: Tensor, columns: Columns | None) -> Tensor:
        """Return values [N, V], or [N, C + 1] of columns and rest, of features [N, F]."""
        layer = self.decoder.output_layer
        if columns is None:
            result: Tensor = layer(features)
            return result
        assert self.rest is not None, "columns are asked of a critic with num_columns"
        # Columns and rest by one product, the rest last, as tensors/values.py reads them.
        weight = torch.cat([layer.rows(columns.ids), self.rest.weight])
        bias = torch.cat([layer.bias.index_select(0, columns.ids), self.rest.bias])
        return linear(layer.inputs(features), weight, bias)

    def attention(self, memory: EncoderMemory, tokens: Tensor, actor_states: Tensor) -> Tensor:
        """Return the attention [B, T, U] at every step of given tokens [B, T]."""
        return self.decoder.attend(memory, tokens, actor_states if self.reads_actor_states else None)

    def for_page(self) -> PageNetwork:
        """Return how its encoder, input and output layer are, and the weights; the actor's vectors as if its own."""
        settings, vectors = self.settings, self.decoder.embedding.weight
        facts = {
            "encoder": "bidirectional",
            "tied": settings.tied or settings.embeddings == "actor",
            "readsActorStates": self.reads_actor_states,
        }
        # The actor's vectors are no weight of the critic, hence in no state_dict; one's own stand in it twice.
        embeddings = {f"{part}.embedding.weight": vectors for part in ("encoder", "decoder")}
        return PageNetwork(facts, self.state_dict() | embeddings)
