"""A value head on a frozen copy of the actor that is prompted with the reference answer.

    V(Ŷ_1..t-1, Y) = w · tanh(W x_t + a) + b,   x_t the frozen model's normalised state after (Y, X, Ŷ_1..t-1)

The reference stands in the source, by a template of text, so that whatever the model knows of reading two texts side by
side is of use; the head alone is trained. Without `reads_reference` the copy is given what the actor is given, and the
head is the value function of PPO as others have it: the two tell what the privilege brings.

The copy is of the actor as it is when the critic is built: that of `actor.pretrained`. Target copies of the critic
refer to the same one, and where the actor has adapters its base is the actor's own. It is no weight of the critic; a
digest says in checkpoints which one it was.

Shapes: B examples, T tokens, N unmasked tokens, H state.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, Masks, Memory
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import Held, StateValueCritic
from seqcritic.contracts.networks import copy_network
from seqcritic.contracts.parts import ActorSettings, CriticSettings, refuse_values_of_tokens
from seqcritic.contracts.registry import register_critic
from seqcritic.errors import UserError
from seqcritic.models.hf.lora import digest_weights
from seqcritic.settings.base import Size
from seqcritic.tensors.packed import Packed

SOURCE, REFERENCE = "{source}", "{reference}"
ADAPTER = "lora_"  # in the names of their weights


class PromptedCriticSettings(CriticSettings):
    """A head on a frozen copy of a pretrained actor."""

    values_tokens: ClassVar[bool] = False
    kind: str = "prompted"
    hidden: Size = Field(128, description="units between the model's state and the value")
    reads_reference: bool = Field(True, description="prompt with the reference answer; false: as the actor is prompted")
    template: str = Field(
        f"{REFERENCE} | {SOURCE}", description="how what the copy reads as a source is made of reference and source"
    )

    @field_validator("template")
    @classmethod
    def _has_both(cls, value: str) -> str:
        for part in (SOURCE, REFERENCE):
            if part not in value:
                raise ValueError(f"critic.template: it has no {part}; give one such as '{REFERENCE} | {SOURCE}'")
        return value

    def check(self, actor: ActorSettings, task: str) -> None:
        """Refuse what is of values of tokens."""
        refuse_values_of_tokens(self)


@register_critic("prompted")
class PromptedCritic(StateValueCritic):
    """One value at every step of a prediction."""

    Settings = PromptedCriticSettings
    copies_actor = True
    reads_actor_states = False
    base: Tensor  # [16], a digest of the frozen copy

    @classmethod
    def build(cls, settings: CriticSettings, actor: Actor, generator: torch.Generator) -> Self:
        """Build the critic that settings describe for an actor, with a fresh head."""
        assert isinstance(settings, PromptedCriticSettings)
        return cls(actor, settings, generator)

    def __init__(
        self, actor: Actor, settings: PromptedCriticSettings | None = None, generator: torch.Generator | None = None
    ) -> None:
        """Take a copy of an actor that brings its codec along; the head is drawn from `generator`."""
        super().__init__()
        self.settings = PromptedCriticSettings() if settings is None else settings
        if actor.codec is None or actor.codec.num_source_tokens == 0:
            raise UserError(
                f"critic.kind=prompted: {type(actor).__name__} cannot be prompted with texts; give actor.pretrained of "
                "a model that reads, or critic.kind=gru-state"
            )
        self.num_tokens, self._codec = actor.num_tokens, actor.codec
        self._frozen = Held(copy_network(actor).requires_grad_(False))
        # Fresh adapters change nothing, whatever they were drawn from.
        weights = self._frozen.network.named_parameters()
        self._digest = digest_weights((name, weight) for name, weight in weights if ADAPTER not in name)
        self.register_buffer("base", torch.tensor(list(self._digest), dtype=torch.uint8, device=actor.device))
        self.inner = nn.Linear(actor.state_size, self.settings.hidden)
        self.outer = nn.Linear(self.settings.hidden, 1)
        with torch.no_grad():
            limit = actor.state_size**-0.5
            self.inner.weight.uniform_(-limit, limit, generator=generator)
            for weight in (self.inner.bias, self.outer.weight, self.outer.bias):
                weight.zero_()  # every state is worth nothing until something was earned

    def read(self, batch: Batch, masks: Masks | None = None) -> Memory:
        """Let the frozen copy read the sources, and the references with them."""
        if bytes(self.base.tolist()) != self._digest:
            raise UserError("critic: its head was trained on another model than actor.pretrained is now; give that one")
        frozen = self._copy
        if not self.settings.reads_reference:
            return self._without_gradient(frozen, batch.sources, batch.source_mask)
        if batch.texts is None:
            raise UserError("critic.kind=prompted: it is prompted with texts, and the batch has tokens alone")
        lines = [
            self.settings.template.replace(SOURCE, source).replace(REFERENCE, references[0])
            for source, references in zip(batch.texts.sources(), batch.texts.references(), strict=True)
        ]
        prompts, mask = self._codec.encode_sources(lines)
        return self._without_gradient(frozen, prompts.to(frozen.device), mask.to(frozen.device))

    @torch.no_grad()
    def _without_gradient(self, frozen: Actor, sources: Tensor, mask: Tensor) -> Memory:
        return frozen.encode(sources, mask)

    @property
    def _copy(self) -> Any:
        # The copy is no module of the critic's, so it is moved when it is used.
        return self._frozen.network.to(self.outer.weight)

    def encode(self, references: Tensor, mask: Tensor, masks: Masks | None = None) -> Memory:
        """Tell that references alone are not enough."""
        raise UserError("critic.kind=prompted: it reads sources and references; ask `read` with a batch")

    def masked_state_values(self, memory: Memory, predictions: Tensor, actor_states: Tensor, mask: Tensor) -> Packed:
        """Return values [N, 1] of the states before the unmasked tokens of predictions [B, T]."""
        with torch.no_grad():
            _, views = self._copy.features(memory, predictions, mask)
        states = Packed.of(views, mask)
        seen = nn.functional.layer_norm(states.rows, states.rows.shape[1:])  # models differ in how long theirs are
        return states._replace(rows=self.outer(torch.tanh(self.inner(seen))))
