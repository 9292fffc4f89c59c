"""The documentation: its reference has all settings and commands, its pages are short, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import seqcritic
from seqcritic.cli import build_parser
from seqcritic.settings.data import TokenSettings
from seqcritic.settings.io import load_recipe
from seqcritic.settings.tree import Settings

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts and path.parent.name != "reference")
WORDS_PER_MINUTE = 240  # of adults who read silently (Brysbaert 2019)


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return load_part("reference").make_pages()


def load_part(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"site_{name}", DOCS / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(tree: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted paths of all settings of a recipe."""
    paths = []
    for name, value in tree.items():
        inner = isinstance(value, dict) and name not in ("costs", "overrides", "arguments")
        paths += leaves(value, f"{prefix}{name}.") if inner else [prefix + name]
    return paths


@pytest.mark.parametrize("task", ["spelling", "translation"])
def test_every_setting_is_in_the_reference(task: str, reference: dict[str, str]) -> None:
    settings = Settings.model_validate({"data": {"task": task}})
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.+) \|$", "\n".join(reference.values()), re.MULTILINE))
    missing = [path for path in leaves(settings.model_dump(mode="json")) if path not in rows]
    assert missing == []


def test_settings_are_told_with_type_default_and_description(reference: dict[str, str]) -> None:
    every = "\n".join(reference.values())
    size = TokenSettings.model_fields["size"]
    assert f"| `data.source_tokens.size` | whole number, from 1 or null | `30000` | {size.description} |" in every
    assert "| `phases.train.warm_up` | whole number, from 0 | `0` |" in every
    assert "| `data.maximum_ratio` | number, from 1 or null | `null` |" in every
    assert "| `data.target_tokens.minimum_count` | whole number, from 1 | `1` |" in every
    assert "| `method.gamma_phi` | number, above 0 to 1 | `0.001` |" in every


def test_what_nobody_finds_by_guessing_is_in_a_page_too() -> None:
    told = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in ("tokens.size", "warm_up", "data.maximum_ratio", "minimum_count"):
        assert f"{name}`" in told, name


def test_every_command_and_public_name_is_in_the_reference(reference: dict[str, str]) -> None:
    commands = next(action for action in build_parser()._actions if action.dest == "command").choices
    for name, command in commands.items():
        section = reference["commands"].partition(f"## `seqcritic {name}`\n")[2].partition("\n## ")[0]
        for action in command._actions:
            for option in action.option_strings[:1]:
                assert option == "-h" or f"| `{option}" in section, (name, option)
    for name in set(seqcritic.__all__) - {"__version__", "losses"}:
        assert f":: seqcritic.{name}\n" in reference["python"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_is_read_in_ten_minutes(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.lstrip().startswith("|")]
    assert len(" ".join(prose).split()) <= 10 * WORDS_PER_MINUTE


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_links_work_where_pages_are_read_as_files(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    made = {DOCS / "reference" / name for name in ("commands.md", "python.md")}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, heading = target.partition("#")
        if "://" in target:
            continue
        path = (page.parent / name).resolve() if name else page
        assert path.exists() or path in made, target
        if heading and path.suffix == ".md" and path.exists():
            assert heading in {anchor_of(line) for line in headings(path)}, target


def headings(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)


def anchor_of(heading: str) -> str:
    """Return how forges call the place of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_names_in_docstrings_become_code_and_signs_stay() -> None:
    lines = ["Give `data.key=value`s; |Y| and θ_t", "of `a", "b` stay."]
    load_part("docstrings").from_plain_text(None, "", "", None, None, lines)
    assert lines == ["Give ``data.key=value``\\ s; \\|Y\\| and θ\\_t", "of ``a", "b`` stay."]


def test_the_recipe_of_the_tutorial_is_one(tmp_path: Path) -> None:
    page = (DOCS / "tutorial" / "pairs.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "recipe.yaml").write_text(recipe, encoding="utf-8")
    assert load_recipe(tmp_path / "recipe.yaml").method.label == "likelihood"
    (command,) = re.findall(r"seqcritic train recipe.yaml --out runs/dates-ac ([^`]*)", page)
    settings = load_recipe(tmp_path / "recipe.yaml", command.replace("\\\n", "").split())
    assert settings.method.label == "actor-critic+likelihood"
