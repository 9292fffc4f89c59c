"""A method registers once, in its own file; its section of the settings follows from that."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from seqcritic.contracts.method import Traits
from seqcritic.contracts.method_registry import METHODS, PACKAGED, register_method, registered_methods
from seqcritic.errors import UserError
from seqcritic.methods.method import RewardMethod
from seqcritic.methods.mixer import Mixer, MixerSettings
from seqcritic.settings.base import Count, Section
from seqcritic.settings.io import settings_from, to_yaml, with_method
from seqcritic.settings.methods import method_labels, method_section, method_settings, section_key, typical_costs
from seqcritic.settings.tree import Settings


class SlowMixerSettings(Section):
    """Of `slow-mixer`."""

    patience: Count = 3


class SlowMixer(Mixer):
    """A method of somebody else."""

    name = "slow-mixer"
    Settings = SlowMixerSettings  # type: ignore[assignment]
    traits = Traits(2.5, 3.5)


@pytest.fixture
def slow_mixer(monkeypatch: pytest.MonkeyPatch) -> type[SlowMixer]:
    monkeypatch.setattr(METHODS, "_classes", dict(METHODS._classes))
    return register_method(SlowMixer)


def test_packaged_methods_stand_in_the_order_of_their_files_whatever_was_imported_first():
    code = "from seqcritic.methods import raml, mixer; from seqcritic.contracts.method_registry import *; "
    code += "print(*registered_methods())"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    files = [registered_methods()[name].__module__.rpartition(".")[2] for name in found]
    assert dict(zip(found, files, strict=True)) == PACKAGED
    assert found[:4] == ["likelihood", "reinforce", "reinforce-critic", "actor-critic"]


def test_settings_load_no_torch_before_they_are_validated():
    code = "import sys, seqcritic.settings.tree, seqcritic.settings.io as s; assert s.recipe_description('demo'); "
    code += "assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", registered_methods())
def test_a_method_finds_its_own_section(name: str):
    settings = method_settings({"name": name})
    own = registered_methods()[name].Settings
    assert type(settings.own) is (own or Section)
    assert (section_key(name) in method_section().model_fields) == (own is not None)


def test_a_registered_method_has_labels_costs_and_a_section(slow_mixer: type[SlowMixer]):
    assert list(registered_methods())[-1] == "slow-mixer"
    assert {"slow-mixer", "slow-mixer+likelihood"} < set(method_labels())
    assert (typical_costs()["slow-mixer"], typical_costs()["slow-mixer+likelihood"]) == (2.5, 3.5)
    settings = settings_from({"method": {"name": "slow-mixer", "slow_mixer": {"patience": 5}}})
    assert settings.method.own == SlowMixerSettings(patience=5)
    assert "  slow_mixer:\n    patience: 5\n" in to_yaml(settings)
    assert with_method(settings, "mixer").method.own == MixerSettings()
    assert settings_from(settings.model_dump(mode="json")) == settings


def test_faults_in_the_section_of_a_registered_method_name_its_path(slow_mixer: type[SlowMixer]):
    with pytest.raises(UserError, match=r"^method\.slow_mixer\.patience: input should be greater than or equal to 0"):
        settings_from({"method": {"slow_mixer": {"patience": -1}}})
    with pytest.raises(
        UserError, match=r"^unknown setting 'method\.slow_mixer\.patienc'.*'method\.slow_mixer\.patience'"
    ):
        settings_from({"method": {"slow_mixer": {"patienc": 1}}})
    with pytest.raises(
        UserError, match=r"^method\.slow_mixer: a section, not a value; give method\.slow_mixer\.patience"
    ):
        settings_from({"method": {"slow_mixer": 1}})


def test_a_method_that_is_gone_has_no_section():
    with pytest.raises(UserError, match=r"^unknown setting 'method\.slow_mixer'"):
        settings_from({"method": {"slow_mixer": {"patience": 5}}})


def test_the_whole_section_is_frozen():
    settings = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.method.mixer = MixerSettings(step=1)  # type: ignore[attr-defined]
    with pytest.raises(ValidationError, match="frozen"):
        settings.method.own.step = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [None, "Slow", "slow+likelihood", "slow--mixer", "-slow", "all methods"])
def test_names_that_a_recipe_could_not_say_are_refused(wrong: str | None):
    made = type("Wrong", (Mixer,), {} if wrong is None else {"name": wrong})
    with pytest.raises(ValueError, match="a method's own name is"):
        register_method(made)


def test_a_method_that_makes_no_loss_is_refused():
    with pytest.raises(ValueError, match="Idle has neither `__call__` nor `updates`"):
        register_method(type("Idle", (RewardMethod,), {"name": "idle"}))


def test_two_methods_of_one_name_are_refused(slow_mixer: type[SlowMixer]):
    register_method(slow_mixer)  # the same once more, as when its module is imported anew
    with pytest.raises(ValueError, match="two methods are called 'slow-mixer'"):
        register_method(type("Other", (Mixer,), {"name": "slow-mixer"}))


def test_a_section_that_would_hide_a_common_setting_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(METHODS, "_classes", dict(METHODS._classes))
    register_method(type("Samples", (Mixer,), {"name": "target-samples"}))
    with pytest.raises(ValueError, match=r"would hide the setting method\.target_samples"):
        method_section()
