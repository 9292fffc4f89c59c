"""Actor and critic by their settings."""

from __future__ import annotations

from dataclasses import replace

import torch

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.parts import part_class
from seqcritic.contracts.registry import ACTORS, CRITICS
from seqcritic.settings.data import OBJECT
from seqcritic.settings.tree import Settings


def build_actor(
    settings: Settings, num_source_tokens: int, num_target_tokens: int, generator: torch.Generator
) -> Actor:
    """Return an actor with fresh weights."""
    kind = part_class(ACTORS, settings.actor.kind)
    actor = kind.build(settings.actor, num_source_tokens, num_target_tokens, generator)
    # The settings say how long answers may grow; what fits into the actor stays as the actor has said.
    actor.limits = replace(actor.limits, **dict(settings.length))
    return actor


def build_codec(settings: Settings) -> Codec | None:
    """Return the codec that the actor of the settings brings along; None: the data has its own."""
    if settings.actor.kind == OBJECT:
        return None
    return part_class(ACTORS, settings.actor.kind).build_codec(settings.actor)


def build_critic(settings: Settings, actor: Actor, generator: torch.Generator) -> Critic:
    """Return a critic with fresh weights for the tokens and the states of an actor."""
    return part_class(CRITICS, settings.critic.kind).build(settings.critic, actor, generator)
