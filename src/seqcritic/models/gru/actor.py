"""The recurrent actor: a GRU with attention, as in the paper, behind the actor's contract.

Shapes: B examples, S source tokens, T target tokens, V vocabulary, H state.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, OutputLayer, PageNetwork, Searcher, SpecialTokens
from seqcritic.contracts.parts import ActorSettings
from seqcritic.contracts.registry import register_actor
from seqcritic.data.vocabulary import END
from seqcritic.models.gru.attention import EncoderMemory
from seqcritic.models.gru.beam_decoder import BeamDecoder
from seqcritic.models.gru.decoder import Decoder, State
from seqcritic.models.gru.dropout import Masks
from seqcritic.models.gru.encoder import BidirectionalEncoder, WindowEncoder
from seqcritic.models.gru.initialise import initialise
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.tensors.packed import Packed


@register_actor("gru")
class RecurrentActor(Actor):
    """Encode once; step one token at a time; or run over a whole given sequence. The last two agree."""

    fixed_size_state = True
    Settings = GruActorSettings
    builds_on_meta = True

    @classmethod
    def build(
        cls, settings: ActorSettings, num_source_tokens: int, num_target_tokens: int, generator: torch.Generator
    ) -> Self:
        """Build the actor that settings describe, with fresh weights."""
        assert isinstance(settings, GruActorSettings)
        return cls(settings, num_source_tokens, num_target_tokens, generator)

    def __init__(
        self, settings: GruActorSettings, num_source_tokens: int, num_target_tokens: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.settings = settings
        self.num_tokens, self.state_size = num_target_tokens, settings.hidden
        # Padded by the end token: after the end nothing is read, so padding needs no id of its own.
        self.special = SpecialTokens(end=(END,), padding=END)
        embedding = nn.Embedding(num_source_tokens, settings.embedding)
        self.encoder: BidirectionalEncoder | WindowEncoder = (
            BidirectionalEncoder(embedding, settings.hidden, settings.encoder_layers)
            if settings.encoder == "bidirectional"
            else WindowEncoder(embedding)
        )
        self.decoder = Decoder(
            nn.Embedding(num_target_tokens, settings.embedding),
            settings.hidden,
            self.encoder.size,
            settings.attention,
            dropout=settings.dropout,
            tied=settings.tied,
            output_width=settings.output_width,
        )
        # Also over what the layers have drawn by themselves, from PyTorch's global generator.
        initialise(self, settings.initial_range, generator)

    @property
    def device(self) -> torch.device:
        """Where the weights are, and where what the actor reads must be."""
        return self.decoder.initial.device

    def sharpen(self, factor: float) -> None:
        """Multiply all logits from now on: p becomes p^factor over its sum, the likeliest token stays the likeliest."""
        self.decoder.output_layer.multiply(factor)

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> Masks | None:
        """Return what dropout keeps of so many rows; None, nothing drawn, for an actor without dropout."""
        return self.decoder.draw_masks(num_rows, generator, self.encoder.between)

    def encode(self, sources: Tensor, mask: Tensor, masks: Masks | None = None) -> EncoderMemory:
        """Read sources [B, S] with their mask.

        Drawing and scoring from this memory drop the units of `masks`, the same ones at every step; None: no dropout.
        """
        return self.decoder.encode(self.encoder, sources, mask, masks)

    def start(self, memory: EncoderMemory) -> State:
        """Return the state before the first token."""
        return self.decoder.start(memory)

    def step(self, memory: EncoderMemory, state: State, tokens: Tensor) -> State:
        """Return the state after consuming tokens [B]."""
        return self.decoder.step(memory, state, tokens)

    def logits(self, state: State) -> Tensor:
        """Return the unnormalised log-probabilities [B, V] of the next token."""
        return self.decoder.outputs(state)

    def view(self, state: State) -> Tensor:
        """Return the hidden state [B, H]."""
        return state.hidden

    def features(self, memory: EncoderMemory, tokens: Tensor, mask: Tensor) -> tuple[Packed, Tensor]:
        """Return what `logits_of` makes the logits of the tokens from where the mask [B, T] is True; states [B, T, H].

        Elsewhere nothing is computed.
        """
        return self.decoder.features(memory, tokens, mask=mask)

    def logits_of(self, features: Packed) -> Packed:
        """Return packed logits [N, V]: those of `score`, for the unmasked tokens alone."""
        return self.decoder.read(features)

    def output_layer(self) -> OutputLayer:
        """Return the matrix of the output layer and what it is multiplied with."""
        return self.decoder.output_layer

    def searcher(self, memory: EncoderMemory, width: int) -> Searcher:
        """Return the decoder for all hypotheses of a search at once."""
        return BeamDecoder(self.decoder, memory, width)

    def attention(self, memory: EncoderMemory, tokens: Tensor) -> Tensor:
        """Return the attention [B, T, S] at every step of given tokens [B, T]; entry t chose token t."""
        return self.decoder.attend(memory, tokens)

    def for_page(self) -> PageNetwork:
        """Return the kind of encoder and output layer, and the weights."""
        return PageNetwork({"encoder": self.settings.encoder, "tied": self.settings.tied}, self.state_dict())
