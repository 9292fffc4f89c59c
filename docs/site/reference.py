"""The pages of `reference/`: every setting from its schema, every command from the parser, every public name.

They are made anew at each build and not committed, so that they cannot be out of date.
"""

from __future__ import annotations

import argparse
import inspect
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import seqcritic
from seqcritic.cli import build_parser
from seqcritic.contracts.parts import OwnActorSettings, OwnCriticSettings
from seqcritic.contracts.registry import ACTORS, CRITICS
from seqcritic.settings.bounds import MOST
from seqcritic.settings.data import OwnTaskSettings, SpellingSettings, TranslationSettings
from seqcritic.settings.methods import method_section
from seqcritic.settings.tree import Settings

PAGES = Path(__file__).parents[1] / "reference"


class Row(NamedTuple):
    """One setting."""

    path: str
    type: str
    default: str
    description: str


def write_pages(app: object = None) -> None:
    """Write all pages; one that stays the same keeps its time, so that Sphinx need not read it again."""
    PAGES.mkdir(exist_ok=True)
    for name, text in make_pages().items():
        path = PAGES / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def make_pages() -> dict[str, str]:
    """Return the pages by their names."""
    return {
        "settings-data": _settings_page("data", DATA_NOTE, _kinds_of_data()),
        "settings-actor": _settings_page("actor", ACTOR_NOTE, _kinds_of_parts("actor", ACTORS, OwnActorSettings)),
        "settings-critic": _settings_page("critic", CRITIC_NOTE, _kinds_of_parts("critic", CRITICS, OwnCriticSettings)),
        "settings-method": _settings_page("method", METHOD_NOTE, _sections_of_methods()),
        "settings-others": _settings_page("all others", REST_NOTE, _other_sections()),
        "commands": _commands_page(),
        "python": _python_page(),
    }


# --- settings ----------------------------------------------------------------------------------------------------

DATA_NOTE = "Which text is learnt from, in which tokens ([data](../data.md)). `data.task` chooses what else there is."
ACTOR_NOTE = "The network that writes. `actor.kind` chooses what else there is."
CRITIC_NOTE = "The network that values every next token ([critics](../methods/critics.md)). `critic.kind` chooses."
METHOD_NOTE = "What the actor learns from ([methods](../methods/README.md)). Most methods have a section of their own."
REST_NOTE = "Everything else: the run, its score, phases, training, evaluation, lengths, start and comparison."

Kind = tuple[str, str, type[BaseModel], str]
"""A heading, what is said beneath it, the schema, and the path with which its settings begin."""


def _kinds_of_data() -> Iterator[Kind]:
    for model in (SpellingSettings, TranslationSettings, OwnTaskSettings):
        task = model.model_fields["task"].default
        name = "A task of your own" if task is PydanticUndefined else f"`data.task={task}`"
        yield name, _first_line(model), model, "data"


def _kinds_of_parts(part: str, registry: Any, own: type[BaseModel]) -> Iterator[Kind]:
    for name in registry.names():
        section = registry.find(name).Settings
        if section is not None:
            yield f"`{part}.kind={name}`", _first_line(section), section, part
    yield f"`{part}.kind=module:Class`", _first_line(own), own, part


def _sections_of_methods() -> Iterator[Kind]:
    whole = method_section()
    yield "All methods", _first_line(whole), _without_sections(whole), "method"
    for name, field in whole.model_fields.items():
        section = _section_of(field.annotation)
        if section is not None:
            yield f"`{name.replace('_', '-')}`", _first_line(section), section, f"method.{name}"


def _other_sections() -> Iterator[Kind]:
    yield "The run", _first_line(Settings), _without_sections(Settings), ""
    for name, field in Settings.model_fields.items():
        section = _section_of(field.annotation)
        if section is not None and name not in ("data", "actor", "critic", "method"):
            yield f"`{name}`", _first_line(section), section, name


def _without_sections(model: type[BaseModel]) -> type[BaseModel]:
    """Return a schema of the settings that stand in a section itself."""
    kept = {name: field for name, field in model.model_fields.items() if not _is_section(field.annotation)}
    return type("Own", (BaseModel,), {"__annotations__": {n: f.annotation for n, f in kept.items()}} | kept)


def _settings_page(title: str, note: str, kinds: Iterator[Kind]) -> str:
    name = f"`{title}`" if " " not in title else title
    parts = [f"# Settings: {name}\n\n{note}\n"]
    for heading, description, model, prefix in kinds:
        parts.append(f"## {heading}\n\n{description}\n\n| setting | type | default | what it is |\n|---|---|---|---|")
        parts += [
            f"| `{row.path}` | {row.type} | {row.default} | {row.description} |" for row in _list_rows(model, prefix)
        ]
        parts.append("")
    return "\n".join(parts) + "\n"


def _list_rows(model: type[BaseModel], prefix: str) -> Iterator[Row]:
    for name, field in model.model_fields.items():
        path = f"{prefix}.{name}" if prefix else name
        section = _section_of(field.annotation)
        optional = section is not None and type(None) in typing.get_args(field.annotation)
        if section is not None and not _is_list(field.annotation):
            if optional:
                yield Row(path, "null, or a section", _write_default(field), _as_cell(field.description or ""))
            yield from _list_rows(section, path)
        elif section is not None:
            yield Row(path, "a list of sections", _write_default(field), _as_cell(field.description or ""))
            yield from _list_rows(section, f"{path}.N")
        else:
            yield Row(path, _write_type(field), _write_default(field), _as_cell(field.description or ""))


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a setting holds, itself, as an option or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _section_of(part)) is not None), None)


def _is_section(annotation: Any) -> bool:
    return _section_of(annotation) is not None


def _is_list(annotation: Any) -> bool:
    return typing.get_origin(annotation) is tuple


def _write_type(field: FieldInfo) -> str:
    return _as_cell(_name_type(field.annotation, field.metadata))


def _name_type(annotation: Any, metadata: list[Any] = []) -> str:  # noqa: B006 – it is only read
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _name_type(arguments[0], [*arguments[1:], *metadata])
    if origin is Literal:
        return ", ".join(f"`{_plain(value)}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if part is type(None) else _name_type(part, metadata) for part in arguments)
    if origin is tuple:
        return "a list of texts"
    if origin is dict or annotation is dict:
        return "a mapping"
    named = {int: "whole number", float: "number", bool: "`true`, `false`", str: "text"}.get(annotation, "any")
    bounds = _write_bounds(metadata) if annotation in (int, float) else ""
    return f"{named}, {bounds}" if bounds else named


def _write_bounds(metadata: list[Any]) -> str:
    """Return the bounds of a number; upper ones that only keep out nonsense are left out."""
    bounds = {
        kind: getattr(part, kind)
        for entry in metadata
        for part in [entry, *getattr(entry, "metadata", [])]
        for kind in ("ge", "gt", "le", "lt")
        if isinstance(part, getattr(annotated_types, kind.capitalize())) and abs(getattr(part, kind)) < MOST
    }
    lower = bounds.get("ge", bounds.get("gt"))
    upper = bounds.get("le", bounds.get("lt"))
    if lower is None:
        return "" if upper is None else f"up to {upper:,}"
    above, below = ("above " if "gt" in bounds else ""), ("below " if "lt" in bounds else "")
    if upper is None:
        return f"{above or 'from '}{lower:,}"
    return f"{above}{lower:,} to {below}{upper:,}"


def _write_default(field: FieldInfo) -> str:
    if field.is_required():
        return "to be given"
    value = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel):
        return "see below"
    return f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    """Return a value as a recipe has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(str, value))}]"
    return '""' if value == "" else str(value)


def _as_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _first_line(thing: object) -> str:
    return _as_cell((inspect.getdoc(thing) or "").partition("\n\n")[0])


# --- commands ----------------------------------------------------------------------------------------------------


def _commands_page() -> str:
    parser = build_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    briefly = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    parts = [
        "# Commands\n\n`seqcritic COMMAND --help` prints the same. Exit codes: [running](../running.md#exit-codes).\n",
        "| command | |\n|---|---|",
        *(f"| [`{name}`](#seqcritic-{name}) | {_as_cell(briefly[name])} |" for name in commands.choices),
        "",
    ]
    for name, command in commands.choices.items():
        parts.append(f"## `seqcritic {name}`\n\n{_as_cell(command.description or briefly[name])}\n")
        actions = [action for action in command._actions if not isinstance(action, argparse._HelpAction)]
        if actions:
            parts.append("| argument | |\n|---|---|")
            parts += [f"| {_name_argument(action)} | {_describe_argument(action)} |" for action in actions]
        parts.append("")
    return "\n".join(parts) + "\n"


def _name_argument(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    values = " ".join(value) if isinstance(value, tuple) else value
    if not action.option_strings:
        name = f"{values} …" if action.nargs in ("*", "+") else values
    elif action.nargs == 0:
        name = ", ".join(action.option_strings)
    else:
        name = f"{', '.join(action.option_strings)} {values}"
    return f"`{_as_cell(name)}`".replace("&lt;", "<")


def _describe_argument(action: argparse.Action) -> str:
    text = action.help or ""
    if action.required and action.option_strings:
        text += " (required)"
    if action.choices and action.default is not None:
        text += f" (default {action.default})"
    return _as_cell(text.strip())


# --- Python ------------------------------------------------------------------------------------------------------

GROUPS = {
    "Commands": "What the command line does, as functions.",
    "Contracts": "What an actor, a critic, a score, a task and a method are; read [bring your own](../own/README.md).",
    "Registering": "Names for what is your own, so that recipes can use it.",
    "Everything else": "",
}


def _group_of(name: str) -> str:
    if name.startswith("register_"):
        return "Registering"
    if name in [choice.replace("-", "_") for choice in _command_names()] or name in ("load_model", "load_recipe"):
        return "Commands"
    contracts = (
        "Actor",
        "Critic",
        "Score",
        "Task",
        "Method",
        "Codec",
        "Batch",
        "EvaluationSet",
        "SpecialTokens",
        "Callback",
    )
    return "Contracts" if name in contracts else "Everything else"


def _command_names() -> list[str]:
    (commands,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return list(commands.choices)


def _python_page() -> str:
    names = [name for name in seqcritic.__all__ if not name.startswith("_")]
    parts = ["# Python\n\nThe public names of the package, all as `seqcritic.NAME`.\n"]
    for group, note in GROUPS.items():
        parts.append(f"## {group}\n\n{note}\n\n```{{eval-rst}}")
        parts += [line for name in names if _group_of(name) == group for line in _autodoc(name)]
        parts.append("```\n")
    return "\n".join(parts)


def _autodoc(name: str) -> list[str]:
    """Return the directive for a public name: where it is defined, shown as people import it."""
    found = getattr(seqcritic, name)
    if inspect.ismodule(found):
        return [f".. automodule:: {found.__name__}", "   :members:", "   :no-index:", ""]
    kind = "autoclass" if inspect.isclass(found) else "autofunction"
    members = ["   :members:"] if kind == "autoclass" else []
    return [f".. {kind}:: seqcritic.{name}", *members, ""]
