"""Scores, actors and critics that a recipe can name, whether they are part of this package or of another.

A name is known by one of three ways, and nothing is imported until it is asked for:

- a file of our own package, `scores/rouge_l.py` for `rouge-l`, whose class has the decorator;
- the decorator alone, in code that has been imported: `@register_score("my-score")`;
- an entry point of an installed package, `[project.entry-points."seqcritic.scores"] my-score = "my_package:MyScore"`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Generic, TypeVar

from seqcritic.errors import UserError, nearest

if TYPE_CHECKING:
    # Reading a recipe asks for names only; torch, which the contracts import, takes seconds to load.
    from seqcritic.contracts.actor import Actor
    from seqcritic.contracts.critic import Critic
    from seqcritic.contracts.score import Score
    from seqcritic.contracts.task import Task

Kind = TypeVar("Kind")
Class = TypeVar("Class", bound=type)


class Registry(Generic[Kind]):
    """The classes of one contract by name.

    `what` it is, the `setting` that names one, the `group` of entry points. Our own are the files of the package that
    is called like the group, or the modules that `own` names. `aliases` are second names, of which the first one is
    what folders and signatures say.
    """

    def __init__(
        self,
        what: str,
        setting: str,
        group: str,
        own: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.what = what
        self.setting = setting
        self.group = group
        self.aliases = dict(aliases or {})
        self._own = own
        self._classes: dict[str, type[Kind]] = {}
        self._points: dict[str, EntryPoint] | None = None
        self._loaded: set[EntryPoint] = set()

    def register(self, name: str) -> Callable[[Class], Class]:
        """Return a decorator that makes a class known by this name."""

        def add(found: Class) -> Class:
            known = self._classes.setdefault(name, found)
            # A module that is imported anew, as in a notebook, may register its class again.
            if (known.__module__, known.__qualname__) != (found.__module__, found.__qualname__):
                ours, theirs = (f"{each.__module__}:{each.__qualname__}" for each in (known, found))
                raise UserError(f"two {self.what}s are called '{name}': {ours} and {theirs}")
            self._classes[name] = found  # the newer one
            return found

        return add

    def names(self) -> list[str]:
        """Return all names without importing what they name: ours in their order, then the others by name."""
        own = self._own_files()
        return [*own, *sorted({*self.aliases, *self._entry_points(), *self._classes} - {*own})]

    def all(self) -> dict[str, type[Kind]]:
        """Return all classes, in the order of `names`; everything is imported."""
        for module in dict.fromkeys(self._own_files().values()):  # several names may share a file
            importlib.import_module(module)
        for name in self._entry_points():
            self._load_entry_point(name)
        # An alias is a name without a class of its own.
        return {name: self._classes[name] for name in self.names() if name in self._classes}

    def nearest(self, name: str) -> str:
        """Return a hint at the known name that a wrong one may have meant, or nothing."""
        return nearest(name, self.names())

    def find(self, name: str) -> type[Kind]:
        """Return the class of a name; import it where that has not been done."""
        name = self.aliases.get(name, name)
        if name not in self._classes:
            self._load(name)
        return self._classes[name]

    def _load(self, name: str) -> None:
        own, others = self._own_files(), self._entry_points()
        # Ours first: an installed package cannot put its own class in the place of one of ours.
        if name in own:
            importlib.import_module(own[name])
            assert name in self._classes, f"{own[name]} does not register '{name}', for which it is named"
            return
        if name not in others:
            raise UserError(f"unknown name '{name}'{self.nearest(name)}; known: {', '.join(self.names())}")
        self._load_entry_point(name)
        if name not in self._classes:
            raise UserError(
                f"{others[name].value}, which an installed package names for it, does not register '{name}'"
            )

    def _load_entry_point(self, name: str) -> None:
        """Import what an installed package names: a class, or a module whose classes register themselves."""
        entry = self._entry_points()[name]
        if entry in self._loaded:
            return
        try:
            found = entry.load()
            if isinstance(found, type) and found not in self._classes.values():  # a decorator may have done it
                self.register(name)(found)
        # Whatever another's code raises on import ends in one line that names the package.
        except Exception as error:
            package = entry.dist.name if entry.dist is not None else entry.value
            fault = " ".join(f"{type(error).__name__}: {error}".split())
            raise UserError(
                f"the {self.what}s of the installed package '{package}' cannot be loaded ({entry.value}): {fault}; "
                "mend or uninstall it"
            ) from error
        # After it has worked, so that one that fails does so whenever it is asked for.
        self._loaded.add(entry)

    def _own_files(self) -> dict[str, str]:
        """Return our own names and modules: a file has the name, a folder is what files share."""
        if self._own is not None:
            return dict(self._own)
        package = importlib.import_module(self.group)
        modules = [module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg]
        return {module.replace("_", "-"): f"{self.group}.{module}" for module in modules}

    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._points is None:  # read once: looking through all installed packages takes milliseconds
            self._points = {point.name: point for point in entry_points(group=self.group)}
        return self._points


SCORES: Registry[Score] = Registry(
    "score",
    "score.name",
    "seqcritic.scores",
    # The rate is what is reported of the distance: one score by either name.
    aliases={"token-error-rate": "edit-distance"},
)
ACTORS: Registry[Actor] = Registry(
    "actor",
    "actor.kind",
    "seqcritic.actors",
    {"gru": "seqcritic.models.gru.actor", "huggingface": "seqcritic.models.hf.actor"},
)
CRITICS: Registry[Critic] = Registry(
    "critic",
    "critic.kind",
    "seqcritic.critics",
    {
        "gru": "seqcritic.models.gru.critic",
        "gru-state": "seqcritic.models.gru.state_critic",
        "prompted": "seqcritic.models.hf.prompted_critic",
    },
)
TASKS: Registry[Task] = Registry(
    "task",
    "data.task",
    "seqcritic.tasks",
    {"spelling": "seqcritic.data.spelling", "translation": "seqcritic.data.pairs"},
)
register_score = SCORES.register
register_actor = ACTORS.register
register_critic = CRITICS.register
register_task = TASKS.register
