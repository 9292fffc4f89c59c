"""A method of somebody else, in one file outside of the package, used from a recipe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from foreign_actors import LstmActor
from foreign_task import SumTask
from seqcritic.cli import main
from seqcritic.contracts.method_registry import METHODS
from seqcritic.contracts.registry import ACTORS, CRITICS, TASKS, Registry
from seqcritic.errors import UserError
from seqcritic.settings.io import load_recipe, settings_from
from seqcritic.testing import TabularCritic
from support import write_recipe

OWN_METHOD = '''
import torch
from pydantic import Field

import seqcritic
from seqcritic.contracts.method import Outcome, Traits
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.experience import gather_experience
from seqcritic.settings.base import Section, Weight


class ClippedRewardSettings(Section):
    """Of `clipped-reward`."""

    largest: Weight = Field(2.0, description="returns above it count as much as it")


@seqcritic.register_method
class ClippedReward(RewardMethod):
    """-log p of the sample times its return, clipped."""

    name = "clipped-reward"
    Settings = ClippedRewardSettings
    traits = Traits(cost=1.5, mixed_cost=2.0)
    trains = ("actor",)
    own: ClippedRewardSettings

    def __call__(self, networks, batch, generator, progress):
        seen = gather_experience(networks, batch, self.settings, self.score, self.shaping, generator)
        returns = seen.rollout.rewards.sum(dim=1).clamp(max=self.own.largest)
        loss = -(seen.token_log_probabilities.sum(dim=1) * returns).mean()
        measurements = {"actor_loss": loss.detach(), "largest_return": returns.max()}
        return Outcome(seen.add_terms(loss, self.settings), measurements | seen.measurements)
'''


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "own_methods.py").write_text(OWN_METHOD, encoding="utf-8")
    monkeypatch.setattr(METHODS, "_classes", dict(METHODS._classes))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield "own_methods"
    sys.modules.pop("own_methods", None)


def own_recipe(folder: Path) -> Path:
    method = {"name": "clipped-reward", "clipped_reward": {"largest": 1.5}}
    return write_recipe(folder, plugins=["own_methods"], method=method)


def test_a_recipe_names_a_method_of_a_file_beside_it(own_module: str, tmp_path: Path):
    settings = load_recipe(own_recipe(tmp_path))
    assert (settings.method.name, settings.method.own.largest) == ("clipped-reward", 1.5)  # type: ignore[attr-defined]
    assert settings_from(settings.model_dump(mode="json")) == settings
    assert load_recipe("demo", ["plugins=own_methods", "method.clipped_reward.largest=3"]).plugins == ("own_methods",)


def test_it_trains_and_is_evaluated_in_processes_of_their_own(own_module: str, tmp_path: Path):
    recipe = own_recipe(tmp_path)
    short = ["phases.actor.updates=3", "phases.train.updates=4", "training.log_every=1"]
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.remove(''); from seqcritic.cli import main; sys.exit(main())",
    ]
    trained = subprocess.run(
        [*command, "train", str(recipe), "--out", "run", *short], check=False, capture_output=True, text=True
    )
    assert trained.returncode == 0, trained.stderr
    assert "largest_return" in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8")
    evaluated = subprocess.run([*command, "evaluate", "run"], check=False, capture_output=True, text=True)
    assert evaluated.returncode == 0, evaluated.stderr


def test_it_stands_in_a_comparison(own_module: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    command = [
        "compare",
        str(own_recipe(tmp_path)),
        "--methods",
        "likelihood,clipped-reward+likelihood",
        "--out",
        "both",
    ]
    short = ["phases.actor.updates=3", "phases.critic.updates=2", "phases.train.updates=2"]
    costs = ["compare.budget=4", "compare.costs.clipped-reward+likelihood=2"]
    assert main([*command, *short, *costs]) == 0, capfd.readouterr().err
    assert "clipped-reward" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"plugins": ["no_such_module"]}, "plugins: no module 'no_such_module'; write it without '.py', and start"),
        ({"plugins": ["own_methods.py"]}, "plugins: no module 'own_methods.py'; write it without '.py'"),
        ({"plugins": ["own methods"]}, "plugins: 'own methods' names no module"),
        ({"plugins": 3}, "plugins: input should be a valid tuple"),
        ({"plugins": [3]}, "plugins.0: input should be a valid string"),
        ({"plugins": ["faulty_methods"]}, "plugins: importing 'faulty_methods' failed: ZeroDivisionError: division by"),
        ({"plugins": ["needy_methods"]}, "plugins: importing 'needy_methods' failed: No module named 'not_installed'"),
        ({"plugins": ["second_mixer"]}, "plugins: importing 'second_mixer' failed: UserError: two methods are called"),
        (
            {"plugins": ["own_methods"], "method": {"name": "cliped-reward"}},
            "method.name: unknown method 'cliped-reward' (did you mean 'clipped-reward'?); known: likelihood, ",
        ),
        ({"method": {"name": "clipped-reward"}}, "method.name: unknown method 'clipped-reward'"),
    ],
)
def test_faults_are_one_line(own_module: str, tmp_path: Path, given: dict[str, object], complaint: str):
    (tmp_path / "faulty_methods.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "needy_methods.py").write_text("import not_installed\n", encoding="utf-8")
    second = "from seqcritic.contracts.method_registry import *\nfrom seqcritic.methods.mixer import Mixer\n"
    second += "@register_method\nclass Second(Mixer):\n    name = 'mixer'\n"
    (tmp_path / "second_mixer.py").write_text(second, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        settings_from(given)
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("way", ["decorator", "entry point"])
@pytest.mark.parametrize(
    ("registry", "kind", "tree"),
    [
        (ACTORS, LstmActor, {"actor": {"kind": "own"}}),
        (CRITICS, TabularCritic, {"critic": {"kind": "own"}}),
        (TASKS, SumTask, {"data": {"task": "own"}}),
    ],
    ids=["actor", "critic", "task"],
)
def test_actors_critics_and_tasks_register_too(
    registry: Registry[Any], kind: type, tree: dict[str, Any], way: str, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(UserError, match=r"unknown (kind|task) 'own'"):
        settings_from(tree)
    monkeypatch.setattr(registry, "_classes", dict(registry._classes))
    monkeypatch.setattr(registry, "_loaded", set())
    if way == "decorator":
        registry.register("own")(kind)
    else:
        points = [EntryPoint("own", f"{kind.__module__}:{kind.__qualname__}", registry.group)]
        monkeypatch.setattr("seqcritic.contracts.registry.entry_points", lambda group: points)
        monkeypatch.setattr(registry, "_points", None)
    assert registry.find("own") is kind
    section, field = next((section, field) for section, fields in tree.items() for field in fields)
    assert settings_from(tree).model_dump(mode="json")[section][field] == "own"


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    given: list[EntryPoint] = []
    monkeypatch.setattr(
        "seqcritic.contracts.registry.entry_points", lambda group: given if group == "seqcritic.methods" else []
    )
    monkeypatch.setattr(METHODS, "_points", None)
    yield given
    METHODS._loaded.clear()


@pytest.mark.parametrize("value", ["own_methods", "own_methods:ClippedReward"])
def test_an_installed_package_is_found_by_its_entry_point(
    own_module: str, entry_points: list[EntryPoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
):
    monkeypatch.syspath_prepend(tmp_path)
    entry_points.append(EntryPoint("own", value, METHODS.group))
    settings = settings_from({"method": {"name": "clipped-reward"}})
    assert settings.method.own.largest == 2.0  # type: ignore[attr-defined]


def test_an_installed_package_that_cannot_be_loaded_is_named_once(entry_points: list[EntryPoint]):
    entry_points.append(EntryPoint("own", "not_installed:Method", METHODS.group))
    with pytest.raises(UserError) as caught:
        settings_from({"method": {"name": "mixer"}})
    assert str(caught.value).count("mend or uninstall it") == 1
    assert str(caught.value).startswith("the methods of the installed package 'not_installed:Method' cannot be loaded")
