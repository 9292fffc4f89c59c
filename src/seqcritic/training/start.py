"""Where a run begins: the trained actor and critic that `start` names, refused where they do not fit the settings."""

from __future__ import annotations

from typing import Any

from torch import nn

from seqcritic.contracts.codec import Codec
from seqcritic.errors import UserError
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import load_weights, read_description
from seqcritic.training.model import find_weights, read_network, stored_codec


def check_start(settings: Settings) -> None:
    """Refuse a start.actor or start.critic that cannot be read, before the text is read for minutes."""
    for name in ("actor", "critic"):
        place = getattr(settings.start, name)
        if place is not None:
            try:
                read_network(place, name)
            except UserError as error:
                raise UserError(f"start.{name}: {error}") from None


def network_digest(place: str, name: str) -> str:
    """Return the digest of the weights of a network that `start` names; it is the same wherever the folder is."""
    try:
        digests = read_description(find_weights(place))["digests"]
        return str(digests[name])
    except UserError as error:
        raise UserError(f"start.{name}: {error}") from None
    except KeyError:
        raise UserError(f"start.{name}: {place} holds no {name}") from None


def load_start_actor(settings: Settings, actor: nn.Module, codec: Codec) -> dict[str, Any]:
    """Give an actor the weights of start.actor and return the progress of its training."""
    place = settings.start.actor
    assert place is not None
    weights, description = read_network(place, "actor")
    if not codec.reads_like(stored_codec(description, f"start.actor: {place}")):
        raise UserError(f"start.actor: {place} was trained with other vocabularies")
    load_weights(actor, weights, f"start.actor: {place}")
    return dict(description["progress"])


def load_start_critic(settings: Settings, critic: nn.Module) -> dict[str, Any]:
    """Give a critic the weights of start.critic and return the progress of its training."""
    place = settings.start.critic
    assert place is not None
    weights, description = read_network(place, "critic")
    residual = description["settings"]["critic"].get("residual_on", "none")
    if residual != settings.critic.residual_on:
        raise UserError(f"start.critic: {place} was trained with critic.residual_on={residual}; set it so")
    columns = description["settings"]["critic"].get("columns")
    if (columns is None) != (settings.critic.columns is None):  # how many there are may change, the weights fit
        raise UserError(
            f"start.critic: {place} was trained with critic.columns={'null' if columns is None else columns}; set it so"
        )
    sharpening = description["progress"].get("sharpening", 1.0)
    if sharpening != settings.method.sharpening:
        raise UserError(
            f"start.critic: {place} has learnt from an actor with method.sharpening={sharpening:g}, this one has "
            f"{settings.method.sharpening:g}"
        )
    load_weights(critic, weights, f"start.critic: {place}")
    return dict(description["progress"])
