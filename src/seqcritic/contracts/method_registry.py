"""The methods by name: those of the package, of installed packages and of a recipe's plugins.

A method registers itself when its file is imported. Nothing is imported before somebody asks for the methods: this
module itself loads no torch, and help answers at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar

from seqcritic.errors import UserError

if TYPE_CHECKING:
    from seqcritic.contracts.method import Method

    Registered = TypeVar("Registered", bound=type[Method])

ENTRY_POINTS = "seqcritic.methods"  # the group in which an installed package names its modules or classes
# The order of tables, of `compare --methods all` and of the sections of `method`; a file may hold several methods.
PACKAGED = (
    "likelihood",
    "reinforce",
    "actor_critic",
    "reinforce_multisample",
    "self_critical",
    "scheduled_sampling",
    "mixer",
    "minimum_risk",
    "raml",
    "entropy_actor_critic",
    "dagger",
    "direct_loss",
    "beam_search_optimization",
    "grpo",
    "ppo",
    "optimal_completion",
)
_PLACES = {f"seqcritic.methods.{name}": place for place, name in enumerate(PACKAGED)}
_classes: dict[str, type[Method]] = {}


def register_method(method: Registered) -> Registered:
    """Make a method known by its `name`; written as a decorator above its class."""
    name = vars(method).get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(
            f"{method.__qualname__}.name: a method's own name is small letters, digits and single hyphens, not {name!r}"
        )
    from seqcritic.contracts.method import Method  # here, since it loads torch; a method's own file has loaded it

    if method.__call__ is Method.__call__ and method.updates is Method.updates:
        raise ValueError(f"{method.__qualname__} has neither `__call__` nor `updates`: nothing makes its loss")
    other = _classes.get(name, method)
    # The same class again: its module has been imported anew.
    if (other.__module__, other.__qualname__) != (method.__module__, method.__qualname__):
        raise ValueError(f"two methods are called '{name}': {_describe(other)} and {_describe(method)}")
    _classes[name] = method
    return method


def registered_methods() -> Mapping[str, type[Method]]:
    """Return the classes of all methods by name: the package's in their order, then the others by name."""
    for module in _PLACES:
        import_module(module)
    _load_entry_points()
    ordered = sorted(_classes, key=lambda name: _place(_classes[name]))
    return {name: _classes[name] for name in ordered}


@cache
def _load_entry_points() -> None:
    """Import what installed packages name; a module registers its methods itself, a class is registered here."""
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            found = entry.load()
            if isinstance(found, type):
                register_method(found)
        except Exception as error:
            package = entry.dist.name if entry.dist is not None else entry.value
            fault = " ".join(f"{type(error).__name__}: {error}".split())
            raise UserError(
                f"the methods of the installed package '{package}' cannot be loaded ({entry.value}): {fault}; mend or "
                "uninstall it"
            ) from error


def _place(method: type[Method]) -> tuple[int, str]:
    packaged = _PLACES.get(method.__module__)  # methods of one file stay in the order in which they stand there
    return (len(_PLACES), method.name) if packaged is None else (packaged, "")


def _describe(method: type[Method]) -> str:
    return f"{method.__module__}:{method.__qualname__}"
