"""Sizes of the recurrent actor and critic."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqcritic.contracts.parts import ActorSettings, CriticSettings
from seqcritic.settings.base import Rate, Section, Size


class NetworkSettings(Section):
    """Sizes of an encoder-decoder."""

    section: ClassVar[str]
    embedding: Size = 100
    hidden: Size = 100
    attention: Size = 100
    initial_range: Rate | None = Field(
        0.05, description="weights from U[-range, range], biases 0; null for U[-1/√n, 1/√n]"
    )
    dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="of embeddings and output layer, the same units at all steps of a sequence; none in the paper",
    )
    tied: bool = Field(False, description="read out through the decoder's own embedding")
    output_width: Size | None = Field(
        None,
        description="width of a tanh layer between state and context and the matrix of the output layer; null: none. "
        "A tied output layer has a linear layer as wide as the embedding",
    )

    @model_validator(mode="after")
    def _widths_agree(self) -> Self:
        if self.tied and self.output_width not in (None, self.embedding):
            raise ValueError(
                f"{self.section}.output_width: a tied output layer is as wide as the embedding ({self.embedding}), "
                f"not {self.output_width}; leave output_width null or tied false"
            )
        return self


class GruActorSettings(NetworkSettings, ActorSettings):
    """The recurrent actor's sizes and its encoder."""

    section = "actor"
    encoder: Literal["bidirectional", "window"] = Field(
        "bidirectional", description="a bidirectional GRU, or the paper's convolutional encoder (a window mean)"
    )
    encoder_layers: Annotated[int, Field(ge=1, le=8)] = Field(
        1, description="of the bidirectional encoder: each further one reads both directions of the one before"
    )

    @model_validator(mode="after")
    def _has_layers(self) -> Self:
        if self.encoder == "window" and self.encoder_layers > 1:
            raise ValueError("actor.encoder_layers: a window mean has one layer; set actor.encoder=bidirectional")
        return self

    def facts(self) -> list[tuple[str, str]]:
        """Return what a model card says of the actor."""
        sizes = f"{self.embedding}, {self.hidden}, {self.attention}"
        layers = "" if self.encoder_layers == 1 else f", {self.encoder_layers} layers"
        return [("encoder", f"{self.encoder}{layers}"), ("embedding, hidden, attention", sizes)]


class GruCriticSettings(NetworkSettings, CriticSettings):
    """Sizes of the recurrent critic."""

    section = "critic"
    reads_actor_states: bool = Field(True, description="feed the actor's detached states to the critic")
    embeddings: Literal["own", "actor"] = Field(
        "own",
        description="actor: read and value tokens by the actor's vectors of them, held fixed, whatever `embedding` "
        "says; for large vocabularies, with `columns`",
    )

    @model_validator(mode="after")
    def _one_output_layer(self) -> Self:
        if self.embeddings == "actor" and self.output_width is not None:
            raise ValueError(
                "critic.output_width: with critic.embeddings=actor the critic reads out through the actor's vectors; "
                "leave it null"
            )
        return self

    def check(self, actor: ActorSettings, task: str) -> None:
        """Refuse to begin with the weights of an actor that has others."""
        if not self.from_actor:
            return
        if (
            task != "spelling"
            or not isinstance(actor, GruActorSettings)
            or actor.encoder != "bidirectional"
            or actor.encoder_layers > 1
            or actor.tied
        ):
            raise ValueError(
                "critic.from_actor: the critic would read the reference with what the actor reads the source with: it "
                "needs the spelling task, whose sides share their tokens, actor.encoder=bidirectional, "
                "actor.encoder_layers=1 and no actor.tied"
            )
        if self.embeddings == "actor":
            raise ValueError(
                "critic.from_actor: a critic with the actor's vectors cannot begin so; set critic.embeddings=own"
            )
        for size in ("embedding", "hidden", "attention", "output_width", "tied"):
            if getattr(self, size) != getattr(actor, size):
                raise ValueError(f"critic.from_actor: critic.{size} must be actor.{size}, {getattr(actor, size)}")
