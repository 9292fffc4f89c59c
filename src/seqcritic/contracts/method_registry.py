"""The methods by name: those of the package, of installed packages and of a recipe's plugins.

A method registers itself when its file is imported. Nothing is imported before somebody asks for the methods: this
module itself loads no torch, and help answers at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from seqcritic.contracts.registry import Registry

if TYPE_CHECKING:
    from seqcritic.contracts.method import Method

    Registered = TypeVar("Registered", bound=type[Method])

# The order of tables, of `compare --methods all` and of the sections of `method`: names and their files.
PACKAGED = {
    "likelihood": "likelihood",
    "reinforce": "reinforce",
    "reinforce-critic": "reinforce",
    "actor-critic": "actor_critic",
    "reinforce-multisample": "reinforce_multisample",
    "self-critical": "self_critical",
    "scheduled-sampling": "scheduled_sampling",
    "mixer": "mixer",
    "minimum-risk": "minimum_risk",
    "raml": "raml",
    "entropy-actor-critic": "entropy_actor_critic",
    "dagger": "dagger",
    "direct-loss": "direct_loss",
    "beam-search-optimization": "beam_search_optimization",
    "grpo": "grpo",
    "ppo": "ppo",
    "optimal-completion": "optimal_completion",
}
METHODS: Registry[Method] = Registry(
    "method",
    "method.name",
    "seqcritic.methods",
    {name: f"seqcritic.methods.{module}" for name, module in PACKAGED.items()},
)


def register_method(method: Registered) -> Registered:
    """Make a method known by its `name`; written as a decorator above its class."""
    # Of its own: an inherited name would be that of the method it builds on.
    name = vars(method).get("name")
    # The name becomes a section's key with _ for -, and part of labels with +likelihood and of folders.
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(
            f"{method.__qualname__}.name: a method's own name is small letters, digits and single hyphens, not {name!r}"
        )
    from seqcritic.contracts.method import Method  # here, since it loads torch; a method's own file has loaded it

    if method.__call__ is Method.__call__ and method.updates is Method.updates:
        raise ValueError(f"{method.__qualname__} has neither `__call__` nor `updates`: nothing makes its loss")
    return METHODS.register(name)(method)


def registered_methods() -> Mapping[str, type[Method]]:
    """Return the classes of all methods by name: the package's in their order, then the others by name."""
    return METHODS.all()
