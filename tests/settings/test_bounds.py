"""No number is too large to be refused in one line: every setting and option has its bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from seqcritic.cli import main
from seqcritic.errors import UserError
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.settings.bounds import LARGEST, MOST, WIDEST
from seqcritic.settings.data import SpellingSettings, TranslationSettings
from seqcritic.settings.io import set_leaf, settings_from
from seqcritic.settings.methods import method_section
from seqcritic.settings.tree import Settings
from support import Refusal

TOO_LARGE = 10**22


def numbers(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type]]:
    """Yield the dotted name of every number of the settings, and whether it is a whole one."""
    for name, field in model.model_fields.items():
        for kind in kinds(field.annotation):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from numbers(kind, f"{prefix}{name}.")
            elif kind in (int, float):
                yield f"{prefix}{name}", kind


def kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation is made of."""
    parts = get_args(annotation)
    if not parts:
        yield annotation
    for part in parts:
        yield from kinds(part)


SECTIONS = {"method.": method_section(), "actor.": GruActorSettings, "critic.": GruCriticSettings}
NUMBERS = {
    f"{task.model_fields['task'].default}: {key}": (task, key, kind)
    for task in (SpellingSettings, TranslationSettings)
    for key, kind in [
        *numbers(Settings),
        *(each for prefix, section in SECTIONS.items() for each in numbers(section, prefix)),
        *numbers(task, "data."),
    ]
    if not key.startswith("data.") or key.split(".")[1] in task.model_fields
}


def test_the_tree_is_walked():
    keys = {key for _, key, _ in NUMBERS.values()}
    assert {"seed", "actor.hidden", "phases.critic.updates", "data.length", "data.source_tokens.size"} <= keys
    assert {"method.minimum_risk.samples", "compare.beam", "compare.costs", "training.clip_norm"} <= keys
    assert len(keys) > 60


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_an_upper_bound(name: str):
    task, key, _ = NUMBERS[name]
    tree: dict[str, Any] = {"data": {"task": task.model_fields["task"].default}}
    if key == "compare.costs":
        key = "compare.costs.critic"
    for value in (TOO_LARGE, math.inf):
        if key.startswith("score.parts."):  # a list of sections
            key, tree["score"] = "score.parts.0.weight", {"parts": [{"name": "bleu", "weight": value}]}
        else:
            set_leaf(tree, key, value)
        with pytest.raises(UserError) as refused:
            settings_from(tree)
        assert any(fault.startswith(f"{key}: ") for fault in str(refused.value).split("; "))


@pytest.mark.parametrize("key", ["actor.hidden", "phases.train.updates", "data.valid_size"])
def test_what_can_be_meant_is_taken(key: str):
    largest = WIDEST if key == "actor.hidden" else MOST
    tree: dict[str, Any] = {}
    set_leaf(tree, key, largest)
    settings_from(tree)
    set_leaf(tree, key, largest + 1)
    with pytest.raises(UserError, match=f"^{key}: input should be less than or equal to {largest}, not {largest + 1}"):
        settings_from(tree)


@pytest.mark.parametrize("text", ["1e22", "3e24", "1.0e+22", "9" * 5000])
@pytest.mark.parametrize("key", ["actor.hidden", "phases.train.updates"])
def test_the_command_line_s_numbers_are_bounded(key: str, text: str, recipe: Path, refusal: Refusal):
    assert refusal("train", recipe, f"{key}={text}").startswith(f"seqcritic: {key}: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "demo", "--seeds"],
        ["compare", "demo", "--jobs"],
        ["ablate", "demo", "--seeds"],
        ["ablate", "demo", "--jobs"],
        ["evaluate", "run", "--beam"],
        ["predict", "run", "--beam"],
        ["predict", "run", "--nbest"],
        ["report", "run", "--beam"],
        ["inspect", "run", "--source=a", "--reference=a", "--top"],
        ["diagnose", "run", "--examples"],
        ["diagnose", "run", "--draws"],
    ],
)
@pytest.mark.parametrize("text", [str(TOO_LARGE), "9" * 5000])
def test_options_are_bounded(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main([*arguments, text])
    assert left.value.code == 2
    assert f"argument {arguments[-1]}: '{text[:100]}' is not a whole number from 1 to" in capsys.readouterr().err


def test_the_length_reward_is_bounded(refusal: Refusal):
    assert refusal("evaluate", "run", "--beam", 2, "--rho", 1e22).startswith("seqcritic: --rho: 1e+22 is not")
    assert LARGEST < TOO_LARGE


def test_networks_larger_than_the_memory_are_refused(recipe: Path, tmp_path: Path, refusal: Refusal):
    line = refusal("train", recipe, "--out", tmp_path / "run", f"actor.hidden={WIDEST}")
    assert "to train these networks takes at least 360,006 GB of memory, and cpu has " in line
    assert "make actor.hidden, actor.embedding" in line
    assert {path.name for path in (tmp_path / "run").iterdir()} == {".lock"}
