"""Where a run begins: the trained actor and critic that `start` names, refused where they do not fit the settings."""

from __future__ import annotations

from typing import Any

from torch import nn

from seqcritic.contracts.codec import Codec
from seqcritic.data.codecs.text import TextCodec
from seqcritic.errors import UserError
from seqcritic.settings.data import TranslationSettings
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import load_weights, read_description
from seqcritic.training.model import find_weights, read_network, stored_codec


def check_start(settings: Settings) -> None:
    """Refuse a start.actor or start.critic that cannot be read, before the text is read for minutes."""
    for name in ("actor", "critic"):
        place = getattr(settings.start, name)
        if place is not None:
            try:
                read_network(place, name)  # all of it, by its digest: a damaged file is told now
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
        raise UserError(
            f"start.actor: {place} was trained with other vocabularies; give data of its own kind, which are read with "
            "them, or in Python pairs(…, codec=load_model(…).codec)"
        )
    try:
        load_weights(actor, weights, f"start.actor: {place}")
    except UserError as error:
        # Shapes follow from settings, and these are what a user can change.
        theirs, ours = description["settings"]["actor"], settings.actor.model_dump(mode="json")
        other = [f"actor.{name}={value}" for name, value in theirs.items() if ours.get(name) != value]
        raise UserError(f"{error}" + (f"; set {' '.join(other)}" if other else "")) from None
    return dict(description["progress"])


def start_codec(settings: Settings) -> TextCodec | None:
    """Return the vocabularies that data must be read with: those of start.actor, where it reads pairs."""
    place = settings.start.actor
    if place is None or not isinstance(settings.data, TranslationSettings):
        return None
    try:
        codec = stored_codec(read_description(find_weights(place)), place)
    except UserError as error:
        raise UserError(f"start.actor: {error}") from None
    return codec if isinstance(codec, TextCodec) else None


def load_start_critic(settings: Settings, critic: nn.Module) -> dict[str, Any]:
    """Give a critic the weights of start.critic and return the progress of its training."""
    place = settings.start.critic
    assert place is not None
    weights, description = read_network(place, "critic")
    # These weights would fit and mean something else: such a critic has learnt what is added to what is known.
    residual = description["settings"]["critic"].get("residual_on", "none")
    if residual != settings.critic.residual_on:
        raise UserError(f"start.critic: {place} was trained with critic.residual_on={residual}; set it so")
    columns = description["settings"]["critic"].get("columns")
    if (columns is None) != (settings.critic.columns is None):  # how many there are may change, the weights fit
        raise UserError(
            f"start.critic: {place} was trained with critic.columns={'null' if columns is None else columns}; set it so"
        )
    # Its values are those of the policy it was trained on, which sharpening changes.
    sharpening = description["progress"].get("sharpening", 1.0)
    if sharpening != settings.method.sharpening:
        raise UserError(
            f"start.critic: {place} has learnt from an actor with method.sharpening={sharpening:g}, this one has "
            f"{settings.method.sharpening:g}"
        )
    load_weights(critic, weights, f"start.critic: {place}")
    return dict(description["progress"])
