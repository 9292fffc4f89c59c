"""Reading and writing settings: packaged recipes, YAML files, command-line overrides, and what differs.

Faults are raised as UserError with the dotted path and, for a mistyped key, the nearest valid one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from seqcritic.config import Settings
from seqcritic.data_settings import TASKS
from seqcritic.errors import UserError
from seqcritic.method_settings import LABELS, METHODS, MIXED, PAPER_LIKELIHOOD_WEIGHT

WITHOUT_EFFECT_ON_TRAINING = ("description", "compare.beam")
SCORES = ("edit-distance", "bleu", "rouge-l")
FOLDERS = ("start.actor", "start.critic")


def recipe_names() -> list[str]:
    """Return the names of the packaged recipes."""
    entries = files("seqcritic").joinpath("recipes").iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))


def load_recipe(recipe: str | Path, overrides: Sequence[str] = ()) -> Settings:
    """Return the settings of a packaged recipe (by name) or a YAML file (by path), with `section.key=value`s."""
    tree = _read_tree(recipe)
    set_leaves(tree, overrides)
    return settings_from(tree)


def settings_from(tree: dict[str, Any]) -> Settings:
    """Validate a nested dictionary."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise UserError("; ".join(_explain(fault) for fault in error.errors())) from None


def with_method(settings: Settings, label: str) -> Settings:
    """Return the settings for one method of a comparison, its entry of compare.overrides applied."""
    if label not in LABELS:
        raise UserError(f"compare.methods: unknown method '{label}'{_nearest(label, LABELS)}")
    name = label.removesuffix(MIXED)
    tree = settings.model_dump(mode="json")
    weight = (settings.method.likelihood_weight or PAPER_LIKELIHOOD_WEIGHT) if label != name else 0.0
    tree["method"] |= {"name": name, "likelihood_weight": weight}
    if not METHODS[name].takes_correction:
        tree["method"]["correction"] = 0.0
    for key, value in flatten(settings.compare.overrides.get(label, {})).items():
        set_leaf(tree, key, value)
    return settings_from(tree)


def to_yaml(settings: Settings) -> str:
    """Return the resolved settings as YAML."""
    text: str = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)
    return text


def differences(ours: Settings, theirs: Settings) -> list[str]:
    """Return `key: theirs -> ours` for every leaf that differs and changes what is trained.

    Trained networks to start from are the same however the path of their folder is written.
    """
    mine, other = flatten(ours.model_dump(mode="json")), flatten(theirs.model_dump(mode="json"))
    keys = [key for key in dict.fromkeys([*mine, *other]) if key not in WITHOUT_EFFECT_ON_TRAINING]
    return [
        f"{key}: {other.get(key)} -> {mine.get(key)}"
        for key in keys
        if _comparable(key, mine.get(key)) != _comparable(key, other.get(key))
    ]


def _comparable(key: str, value: Any) -> Any:
    return Path(value).resolve() if key in FOLDERS and value is not None else value


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested dictionary as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
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
            raise UserError(f"{key}: '{section}' is a value, not a section{_nearest(key, list(_known_keys()))}")
        own = dict(branch)  # by an anchor, two sections of a YAML file may be one mapping
        tree[section] = own
        tree = own
    tree[leaf] = value


def _read_tree(recipe: str | Path) -> dict[str, Any]:
    path = Path(recipe)
    if str(recipe) in recipe_names():
        text = files("seqcritic").joinpath("recipes", f"{recipe}.yaml").read_text(encoding="utf-8")
    elif path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot read the recipe: {error}") from None
    else:
        raise UserError(
            f"no recipe and no file '{recipe}'{_nearest(str(recipe), recipe_names())}; "
            f"packaged recipes: {', '.join(recipe_names())}"
        )
    return parse_tree(text, path)


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
        return yaml.safe_load(text) if text else text
    except (yaml.YAMLError, ValueError):
        raise UserError(f"{key}: {text!r} is not a valid value") from None


def _known_keys(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield prefix + name
        # A field is a section, or one of several sections, as the tasks are.
        for section in _sections_of(field.annotation):
            yield from _known_keys(section, f"{prefix}{name}.")


def _sections_of(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [section for part in get_args(annotation) for section in _sections_of(part)]


def _nearest(wrong: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.5)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _explain(fault: Any) -> str:
    """Return one line for one fault of pydantic's."""
    place = list(fault["loc"])
    if place[:1] == ["data"] and place[1:2] and place[1] in TASKS:
        del place[1]  # the task, by which pydantic chose among the sections
    key = ".".join(str(part) for part in place)
    if fault["type"] == "extra_forbidden":
        keys = list(_known_keys())
        if key in keys:
            return f"{key}: not a setting of this data.task"
        return f"unknown setting '{key}'{_nearest(key, keys)}"
    if fault["type"] in ("model_type", "model_attributes_type"):
        inside = [name for name in _known_keys() if name.rpartition(".")[0] == key]
        return f"{key}: a section, not a value; give {' or '.join(f'{name}=…' for name in inside[:3])}"
    if fault["type"] == "string_pattern_mismatch" and key == "score.name":
        known = f"known: {', '.join(SCORES)}, module:function"
        return f"score.name: unknown score '{fault['input']}'{_nearest(fault['input'], SCORES)}; {known}"
    if fault["type"] == "union_tag_invalid":
        return f"data.task: unknown task '{fault['ctx']['tag']}'; known: {', '.join(TASKS)}"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    message = fault["msg"][0].lower() + fault["msg"][1:]
    return f"{key}: {message}, not {fault['input']!r}"
