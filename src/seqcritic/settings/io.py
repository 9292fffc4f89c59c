"""Reading and writing settings: packaged recipes, YAML files, command-line overrides, and what differs.

Faults are raised as UserError with the dotted path and, for a mistyped key, the nearest valid one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.parts import ActorSettings, CriticSettings
from seqcritic.contracts.registry import ACTORS, CRITICS
from seqcritic.errors import UserError, nearest
from seqcritic.files import is_sealed, seal_text, unseal_text, write_whole
from seqcritic.settings.data import OWN, SPLITS, TASKS
from seqcritic.settings.methods import (
    MIXED,
    PAPER_LIKELIHOOD_WEIGHT,
    MethodSettings,
    method_labels,
    method_section,
    nearest_method,
)
from seqcritic.settings.tree import Settings

CONFIG_FILE = "config.yaml"  # of a run
# What a run may be resumed with another value of.
WITHOUT_EFFECT_ON_TRAINING = ("description", "compare.beam", "evaluation.also", "training.tracker")
FOLDERS = ("start.actor", "start.critic")  # may be written in several ways for one folder
Overrides = Sequence[str] | Mapping[str, Any]
HERE = ("./", "../")  # how places that are told from a file's folder begin


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes."""
    entries = files("seqcritic").joinpath("recipes").iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))


def recipe_description(name: str) -> str:
    """Return what a packaged recipe says of itself; nothing is validated, for which torch would have to load."""
    return str(_read_tree(name).get("description", ""))


def load_recipe(recipe: str | Path, overrides: Overrides = ()) -> Settings:
    """Return the settings of a packaged recipe (by name), a YAML file, a run or a model (by path), some changed.

    From Python a dictionary, `{"method.name": "mixer"}` or nested; on a command line `section.key=value`s.
    """
    tree = _read_tree(recipe)
    name = flatten(tree).get("method.name")
    override(tree, overrides)
    if flatten(tree).get("method.name") != name and not _names("method.correction", overrides):
        # The recipe's correction was chosen for its own method, and most others have none.
        tree["method"].pop("correction", None)
    return settings_from(tree)


def _names(key: str, overrides: Overrides) -> bool:
    """Tell whether a setting is among those that are changed."""
    if isinstance(overrides, Mapping):
        return key in flatten(dict(overrides))
    return any(each.partition("=")[0] == key for each in overrides)


def override(tree: dict[str, Any], overrides: Overrides, section: str = "") -> None:
    """Change settings in a nested dictionary; `section` limits them to one section."""
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            if not isinstance(key, str):
                raise UserError(f"{key!r}: settings are named by text, as in {{'method.name': 'mixer'}}")
            if section not in ("", key.partition(".")[0]):
                raise UserError(f"{key}: only settings of {section} can be changed here")
            set_leaf(tree, key, value)
    elif isinstance(overrides, str):
        raise UserError(f"'{overrides}': give a dictionary of settings, as {{'method.name': 'mixer'}}")
    else:
        set_leaves(tree, overrides, section)


def settings_from(tree: dict[str, Any]) -> Settings:
    """Validate a nested dictionary."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        faults = dict.fromkeys(_explain(fault) for fault in error.errors())  # in their order, each once
        raise UserError("; ".join(faults)) from None


def with_method(settings: Settings, label: str) -> Settings:
    """Return the settings for one method of a comparison, its entry of compare.overrides applied."""
    labels = method_labels()
    if label not in labels:
        raise UserError(f"compare.methods: unknown method '{label}'{nearest_method(label, labels)}")
    name = label.removesuffix(MIXED)
    tree = settings.model_dump(mode="json")
    # The label decides: alone, a method has no likelihood even in a comparison whose recipe mixes it in.
    weight = (settings.method.likelihood_weight or PAPER_LIKELIHOOD_WEIGHT) if label != name else 0.0
    tree["method"] |= {"name": name, "likelihood_weight": weight}
    # The recipe's correction is for the methods that have one; the settings of others refuse it.
    if not registered_methods()[name].traits.takes_correction:
        tree["method"]["correction"] = 0.0
    # Last, so that what is said of a single method wins over what its label means.
    for key, value in flatten(settings.compare.overrides.get(label, {})).items():
        set_leaf(tree, key, value)
    return settings_from(tree)


def to_yaml(settings: Settings) -> str:
    """Return the resolved settings as YAML."""
    text: str = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)
    return text


def write_settings(settings: Settings, path: Path) -> None:
    """Write all settings as YAML with its digest, so that the file can be moved with the networks near it.

    start.actor and start.critic are told from the file's folder where they are at most two folders above it, as in a
    comparison, and else from the root.
    """
    write_whole(path, seal_text(to_yaml(relative_to_folder(path.parent, settings))))


def read_settings_file(path: Path) -> Settings:
    """Return what `write_settings` wrote; a file of other content than it wrote is refused."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = parse_tree(unseal_text(text), path)
    # A ValueError too, which says for itself what is wrong and where.
    except UserError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is not as seqcritic wrote it ({error}); put back a copy, or remove it and give the run's own "
            "command again, which writes it anew; other settings need another folder"
        ) from None
    # Only what we wrote tells places from the file's folder; a user's ./ is of the current one.
    if is_sealed(text):
        _find_start(tree, path.parent)
    try:
        return settings_from(tree)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def relative_to_folder(folder: Path, settings: Settings) -> Settings:
    """Return the settings with the places of `start` as they are told from a folder."""
    places = {name: _path_relative_to(folder, place) for name, place in settings.start}
    return settings.model_copy(update={"start": settings.start.model_copy(update=places)})


def _path_relative_to(folder: Path, place: str | None) -> str | None:
    """Return a place as told from a folder, or a name, which is no place, as it is."""
    if place is None or (not Path(place).exists() and "/" not in place):  # as of a packaged model
        return place
    target, home = Path(place).resolve(), folder.resolve()
    # Not the root of the disk: every place is below it.
    near = next((above for above in (home.parent.parent, home.parent) if above != above.parent), home)
    if not target.is_relative_to(near):
        return str(target)
    told = os.path.relpath(target, home)
    # By its beginning `_find_start` knows that it is told from the folder.
    return told if told.startswith(HERE) else f"./{told}"


def _find_start(tree: dict[str, Any], folder: Path) -> None:
    """Turn places that are told from a folder into paths."""
    start = tree.get("start")
    if isinstance(start, dict):
        for name, place in start.items():
            if isinstance(place, str) and place.startswith(HERE):
                start[name] = os.path.normpath(folder / place)


def differences(ours: Settings, theirs: Settings, apart_from: Collection[str] = ()) -> list[str]:
    """Return `key: theirs -> ours` for every leaf that differs and changes what is trained, apart from some keys."""
    mine, other = flatten(ours.model_dump(mode="json")), flatten(theirs.model_dump(mode="json"))
    return [f"{key}: {other.get(key)} -> {mine.get(key)}" for key in differing(ours, theirs) if key not in apart_from]


def differing(ours: Settings, theirs: Settings) -> list[str]:
    """Return the leaves that differ and change what is trained.

    Trained networks to start from are the same however the path of their folder is written.
    """
    mine, other = flatten(ours.model_dump(mode="json")), flatten(theirs.model_dump(mode="json"))
    # Of both: a section of a method, or a dictionary, has keys that the other side lacks.
    keys = [key for key in dict.fromkeys([*mine, *other]) if key not in WITHOUT_EFFECT_ON_TRAINING]
    return [key for key in keys if _comparable(key, mine.get(key)) != _comparable(key, other.get(key))]


def names_text(key: str) -> bool:
    """Tell whether a setting says where text is, rather than what is done with it."""
    section, _, rest = key.partition(".")
    return section == "data" and rest.partition(".")[0] in SPLITS


def _comparable(key: str, value: Any) -> Any:
    return Path(value).resolve() if key in FOLDERS and value is not None else value


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested dictionary as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        # An empty dictionary is a leaf: without it, {} could not be told from a key that is absent.
        if isinstance(value, dict) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def set_leaves(tree: dict[str, Any], overrides: Sequence[str], section: str = "") -> None:
    """Apply `section.key=value`s to a nested dictionary; `section` limits them to one section."""
    for override in overrides:
        key, equals, text = override.partition("=")
        key = key.strip()
        if not equals or not key or not key.startswith(section and f"{section}."):
            raise UserError(f"'{override}': an override here has the form {section or 'section'}.key=value")
        set_leaf(tree, key, _parse_value(key, text))


def set_leaf(tree: dict[str, Any], key: str, value: Any) -> None:
    """Set one dotted key of a nested dictionary."""
    *sections, leaf = key.split(".")
    for section in sections:
        branch = tree.get(section, {})
        if not isinstance(branch, dict):
            raise UserError(f"{key}: '{section}' is a value, not a section{nearest(key, list(_known_keys()))}")
        own = dict(branch)  # by an anchor, two sections of a YAML file may be one mapping
        tree[section] = own
        tree = own
    # Of a nested dictionary the leaves count: what else is in the section stays.
    if isinstance(value, Mapping) and isinstance(tree.get(leaf), dict):
        branch = tree[leaf] = dict(tree[leaf])
        for name, inner in value.items():
            set_leaf(branch, name, inner)
    else:
        tree[leaf] = value


def _read_tree(recipe: str | Path) -> dict[str, Any]:
    path = Path(recipe)
    # A packaged recipe's name means the recipe, whatever folder of that name there is.
    if path.is_dir() and str(recipe) not in recipe_names():
        return _tree_of_model(path)
    if str(recipe) in recipe_names():
        text = files("seqcritic").joinpath("recipes", f"{recipe}.yaml").read_text(encoding="utf-8")
    elif path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot read the recipe: {error}") from None
        tree = parse_tree(text, path)
        if is_sealed(text):  # a run's config.yaml, which may have been changed: as a recipe it is the user's own
            _find_start(tree, path.parent)
        return tree
    else:
        raise UserError(
            f"no recipe and no file '{recipe}'{nearest(str(recipe), recipe_names())}; "
            f"packaged recipes: {', '.join(recipe_names())}"
        )
    return parse_tree(text, path)


def _tree_of_model(folder: Path) -> dict[str, Any]:
    """Return the settings that a run, or a model that was exported, was trained with."""
    if (folder / CONFIG_FILE).is_file():  # a run; an exported model has a description alone
        return _read_tree(folder / CONFIG_FILE)
    path = folder / "description.json"
    try:
        tree = dict(json.loads(path.read_text(encoding="utf-8"))["settings"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"no recipe and no file '{folder}': it is a folder, but of no run or model") from None
    tree.pop("start", None)  # where the networks were that this one began from
    return tree


def parse_tree(text: str, path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML text holds; `path` names it where it holds none."""
    try:
        tree = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        place = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{place}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        # A character that YAML forbids, or a date that the calendar does not know.
        raise UserError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{path}: not a YAML mapping of settings")
    return tree


def _parse_value(key: str, text: str) -> Any:
    try:
        # As in a recipe: [a, b], true, null. `key=` gives an empty text, which YAML would read as null.
        return yaml.safe_load(text) if text else text
    except (yaml.YAMLError, ValueError):
        raise UserError(
            f"{key}: {text!r} is not a valid value; text with such characters stands in quotes of its own, "
            f"'{key}=\"…\"'"
        ) from None


def _known_keys(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield prefix + name
        # A field is a section, or one of several sections, as the tasks are.
        for section in _sections_of(field.annotation):
            yield from _known_keys(section, f"{prefix}{name}.")


def _sections_of(annotation: Any) -> list[type[BaseModel]]:
    if annotation is MethodSettings:
        return [method_section()]  # which methods there are is known only now
    if annotation in (ActorSettings, CriticSettings):
        registry = ACTORS if annotation is ActorSettings else CRITICS
        usual = annotation.model_fields["kind"].default
        # Which kind the tree has is not known here: suggestions are those of the usual one.
        return [registry.find(usual).Settings or annotation]
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [section for part in get_args(annotation) for section in _sections_of(part)]


def _explain(fault: Any) -> str:
    """Return one line for one fault of pydantic's."""
    place = list(fault["loc"])
    if place[:1] == ["data"] and place[1:2] and place[1] in (*TASKS, OWN):
        del place[1]  # the task, by which pydantic chose among the sections
    key = ".".join(str(part) for part in place)
    if fault["type"] == "extra_forbidden":
        keys = list(_known_keys())
        # A key of one task's section is unknown to another's.
        if key in keys:
            return f"{key}: not a setting of this data.task"
        return f"unknown setting '{key}'{nearest(key, keys)}"
    if fault["type"] in ("model_type", "model_attributes_type"):
        inside = [name for name in _known_keys() if name.rpartition(".")[0] == key]
        return f"{key}: a section, not a value; give {' or '.join(f'{name}=…' for name in inside[:3])}"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])  # our own validators name the path
    message = fault["msg"][0].lower() + fault["msg"][1:]
    return f"{key}: {message}, not {fault['input']!r}"
