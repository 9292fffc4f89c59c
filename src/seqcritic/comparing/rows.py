"""The rows of a comparison: methods as the recipe has them, or settings of the user's own under a label."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from seqcritic.contracts.method_registry import registered_methods
from seqcritic.errors import UserError
from seqcritic.settings.io import flatten, set_leaf, set_leaves, settings_from, with_method
from seqcritic.settings.methods import MIXED, method_labels, mixed_labels
from seqcritic.settings.tree import Settings

# The shared critics by the name of their run, and the method whose settings each is trained with.
CRITICS = {"critic": "actor-critic", "soft-critic": "entropy-actor-critic"}
# What rows may change: all else decides the actor they share, the text, or how much compute they get.
SECTIONS = ("method", "critic", "score", "phases.critic", "phases.train", "training", "compare.costs")
LONGEST_LABEL = 60


@dataclass(frozen=True)
class Row:
    """A label, a method, and the settings, by dotted key, that differ from the recipe's."""

    label: str
    method: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    own_critic: bool = False  # pre-trained with the row's settings rather than shared
    own_cost: bool = False  # an update may cost more or less than one of the method as the recipe has it

    def settings(self, recipe: Settings) -> Settings:
        """Return the recipe with the row's method and, after the recipe's own settings of it, the row's overrides."""
        tree = with_method(recipe, self.method).model_dump(mode="json")
        for key, value in self.overrides.items():
            set_leaf(tree, key, value)
        return settings_from(tree)

    @property
    def folder(self) -> str:
        """The name of the row's folder."""
        return self.label.replace("=", "-")

    def __str__(self) -> str:
        """Write the row as the command line takes it."""
        return " ".join([f"{self.label}:", *(f"{key}={value}" for key, value in self.overrides.items())])


def method_rows(methods: Sequence[str]) -> tuple[Row, ...]:
    """Return a row for each method; `all` stands for every one, `all+likelihood` for every mixture."""
    groups = {"all": tuple(registered_methods()), "all" + MIXED: mixed_labels()}
    stripped = (label.strip() for label in methods)
    labels = dict.fromkeys(each for label in stripped if label for each in groups.get(label, (label,)))
    return tuple(Row(label, label) for label in labels)


def parse_rows(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the overrides by label of rows that are written as "NAME: key=value key=value"."""
    rows: dict[str, dict[str, Any]] = {}
    for text in texts:
        label, colon, rest = text.partition(":")
        label = label.strip()
        if not colon or not label:
            raise UserError(f"row '{text}': write it as \"NAME: key=value key=value\"")
        if label in rows:
            raise UserError(f"row '{label}': named twice")
        try:
            rows[label] = {}
            set_leaves(rows[label], shlex.split(rest))
        except (UserError, ValueError) as error:  # a quotation mark without its other
            raise UserError(f"row '{label}': {error}") from None
    return rows


def own_rows(settings: Settings, rows: Mapping[str, Mapping[str, Any]]) -> tuple[Row, ...]:
    """Return rows of the user's own; one that could not run, or not beside the others, is refused.

    A row has the recipe's method unless it names another, and without overrides it is the recipe as it stands.
    """
    # What a folder of a comparison may already hold, by the names of folders.
    folders = {"actor": "actor"} | {name: name for name in (*CRITICS, *method_labels())}
    found = []
    for label, tree in rows.items():
        overrides = flatten(dict(tree))
        row = Row(label, _method(settings, overrides), overrides, bool(overrides), bool(overrides))
        try:
            _check_label(row, folders)
            _check_keys(overrides)
            row.settings(settings)
        except UserError as error:
            raise UserError(f"row '{label}': {error}") from None
        folders[row.folder] = label
        found.append(row)
    return tuple(found)


def _method(settings: Settings, overrides: Mapping[str, Any]) -> str:
    """Return the label of a row's method; that there is such a one is checked with its settings."""
    name = str(overrides.get("method.name", settings.method.name))
    weight = overrides.get("method.likelihood_weight", settings.method.likelihood_weight)
    # Likelihood with some likelihood added is likelihood.
    return name + MIXED if weight and name != "likelihood" else name


def _check_label(row: Row, taken: Mapping[str, str]) -> None:
    if row.folder in taken:
        raise UserError(f"'{taken[row.folder]}' is the name of another row, a method or a shared run; choose another")
    is_name = row.label.isprintable() and row.label.strip() == row.label and PurePath(row.label).name == row.label
    if not is_name or row.label.startswith((".", "-")) or ":" in row.label or len(row.label) > LONGEST_LABEL:
        raise UserError(f"a label names a folder: at most {LONGEST_LABEL} characters, no / or :, no . or - in front")


def _check_keys(overrides: Mapping[str, Any]) -> None:
    for key in overrides:
        if key == "phases.train.updates":
            raise UserError(f"{key}: follows from the budget, which is the same for every row; give compare.budget")
        if not key.startswith(tuple(f"{section}." for section in SECTIONS)):
            raise UserError(f"{key}: shared by all rows; a row may change settings of {', '.join(SECTIONS)}")
