"""How settings name the actor, the critic and the task of a run, so that each can be built again from a run's folder.

`kind` is a registered name (`gru`), or `module:Class` of a class of one's own, whose constructor takes `arguments`. An
object from Python tells its arguments by `spec()`. One that has none, or whose class cannot be imported elsewhere, is
stored as `object`: the folder is complete but for it, and whoever loads the folder must pass it again.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import Field

from seqcritic.errors import UserError
from seqcritic.settings.base import Section, Size
from seqcritic.settings.data import OBJECT

if TYPE_CHECKING:
    import torch

    from seqcritic.contracts.registry import Registry

Kind = TypeVar("Kind")
Part = TypeVar("Part", bound="PartSettings")
ResidualOn: TypeAlias = Literal["none", "lookahead", "optimal-completion"]


class PartSettings(Section):
    """What all sections of parts have."""

    kind: str = Field("gru", description="a registered name, or module:Class of your own with its arguments")

    def facts(self) -> list[tuple[str, str]]:
        """Return what a model card says of the part."""
        return [("kind", self.kind)]


class ActorSettings(PartSettings):
    """The actor; a kind of actor adds what it needs."""


class CriticSettings(PartSettings):
    """The critic; a kind of critic adds what it needs."""

    values_tokens: ClassVar[bool] = True
    """Whether critics of this kind tell tokens apart."""
    from_actor: bool = Field(
        False,
        description="begin phases.critic with the actor's weights: the critic then finds its place in the "
        "reference from its first update. For the spelling task, with the sizes of the actor",
    )
    residual_on: ResidualOn = Field(
        "none",
        description="what is known of every next token and added to the network's values, so that it learns the rest "
        "alone. lookahead: what the score says if no more is right; optimal-completion: if all that can be right is, "
        "of edit distances. With score.shaping (docs/methods/critics.md)",
    )
    columns: Size | None = Field(
        None,
        description="value so many tokens one by one, those of a batch's references and the actor's likeliest first "
        "ones, and all others together: for large vocabularies; null: every token",
    )

    def check(self, actor: ActorSettings, task: str) -> None:
        """Raise ValueError where the critic does not go with the settings of the actor or with the task."""
        if self.from_actor:
            raise ValueError(f"critic.from_actor: a critic of kind '{self.kind}' cannot begin so; leave it false")


def refuse_values_of_tokens(critic: CriticSettings) -> None:
    """Raise ValueError where the settings of a critic of states ask for what critics of tokens alone have."""
    if critic.from_actor or critic.residual_on != "none" or critic.columns is not None:
        raise ValueError(
            f"critic.kind: {critic.kind} values states, not tokens; leave critic.from_actor false, "
            "critic.residual_on none and critic.columns null"
        )


class OwnActorSettings(ActorSettings):
    """An actor of one's own."""

    arguments: dict[str, Any] = Field(default_factory=dict, description="of its constructor")


class OwnCriticSettings(CriticSettings):
    """A critic of one's own."""

    arguments: dict[str, Any] = Field(default_factory=dict, description="of its constructor")


def part_settings(values: Any, registry: Registry[Any], base: type[Part], own: type[Part]) -> Part:
    """Validate the section of a part by the settings class of its kind, or by `own` if the kind has none."""
    if isinstance(values, base):  # validated already
        return values
    kind = values.get("kind", base.model_fields["kind"].default) if isinstance(values, dict) else None
    if not isinstance(kind, str):
        return own.model_validate(values)  # refuses it in its own words
    # Not imported: settings are read where the class may be missing, and `part_class` says so when it is needed.
    if ":" in kind or kind == OBJECT:
        return own.model_validate(values)
    if kind not in registry.names():
        known = f"known: {', '.join(registry.names())}, module:Class"
        raise ValueError(f"{registry.setting}: unknown kind '{kind}'{registry.nearest(kind)}; {known}")
    # A registered class without settings takes the arguments of its constructor, as a class of one's own does.
    section: type[Part] = registry.find(kind).Settings or own
    return section.model_validate(values)


def part_class(registry: Registry[Kind], kind: str) -> type[Kind]:
    """Return the class of a kind."""
    if kind == OBJECT:
        raise UserError(
            f"the {registry.what} of this run was passed from Python as an object that its folder cannot describe; "
            f"pass it again from Python, as {registry.what}=…"
        )
    if ":" not in kind:
        return registry.find(kind)
    module, _, name = kind.partition(":")
    if os.getcwd() not in sys.path:
        # The path of an installed command begins with the command's folder, not with the current one.
        sys.path.insert(0, os.getcwd())
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"{registry.setting}: cannot import {kind}: {error}; start seqcritic in the folder of {module}.py, or "
            f"pass the {registry.what} from Python"
        ) from error
    if not isinstance(found, type):
        raise UserError(f"{registry.setting}: {kind} is not a class")
    return found


def construct(kind: type[Kind], arguments: dict[str, Any], generator: torch.Generator) -> Kind:
    """Return an object of a user's own class. Its weights follow from the run's seed, by torch's own generator."""
    import torch

    # A user's layers draw from torch's global generator, which must be afterwards as it was before.
    with torch.random.fork_rng():
        # One draw, however many numbers the class takes: what is drawn next does not depend on its size.
        torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator)))
        try:
            return kind(**arguments)
        except TypeError as error:
            name = f"{kind.__module__}:{kind.__qualname__}"
            raise UserError(f"{name} cannot be built of its arguments: {error}") from error


def describe_part(part: object, default: type[Part]) -> Part:
    """Return the section of settings that builds a part again, as far as it can be built again."""
    settings = getattr(part, "settings", None)
    if isinstance(settings, PartSettings):
        return settings  # type: ignore[return-value]  # a registered kind keeps the section it was built of
    kind, arguments = describe(part)
    return default.model_validate({"kind": kind, "arguments": arguments})


def describe(part: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind and arguments of an object of a user's own class."""
    kind = type(part)
    name = f"{kind.__module__}:{kind.__qualname__}"
    arguments: dict[str, Any] | None = part.spec()
    # Of another process __main__ is another module, and what a function defines is nowhere to be found.
    if arguments is None or kind.__module__ == "__main__" or "<locals>" in name:
        return OBJECT, {"class": name}
    return name, arguments
