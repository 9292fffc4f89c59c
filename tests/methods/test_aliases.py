"""Names that people search for: taken for the method's own name, told where they are not."""

from __future__ import annotations

import pytest

from seqcritic.contracts.method_registry import registered_methods
from seqcritic.errors import UserError
from seqcritic.settings.io import load_recipe, settings_from, to_yaml, with_method
from seqcritic.settings.methods import method_aliases

NAMES = {
    "rloo": "reinforce-multisample",
    "scst": "self-critical",
    "mrt": "minimum-risk",
    "mwer": "minimum-risk",
    "ocd": "optimal-completion",
    "erac": "entropy-actor-critic",
}


@pytest.mark.parametrize(("alias", "name"), NAMES.items())
def test_an_alias_is_the_method_s_own_name_from_then_on(alias: str, name: str):
    settings = load_recipe("demo", [f"method.name={alias}"])
    assert settings.method.name == name
    if alias != "mwer":
        assert settings == load_recipe("demo", [f"method.name={name}"])
    assert f"name: {name}\n" in to_yaml(settings)
    assert alias not in to_yaml(settings)


def test_all_aliases_are_told_here_and_none_hides_a_method():
    assert {alias: name for alias, (name, _) in method_aliases().items()} == NAMES
    assert not NAMES.keys() & registered_methods().keys()


def test_mwer_is_minimum_risk_over_the_list_of_a_beam():
    own = settings_from({"method": {"name": "mwer", "minimum_risk": {"samples": 4}}}).method.own
    assert own.model_dump() == {"candidates": "beam", "samples": 4, "sharpness": 1.0}
    same = {"candidates": "beam", "sharpness": 1.0}
    assert settings_from({"method": {"name": "mwer", "minimum_risk": same}}).method.own.candidates == "beam"
    for other in ({"candidates": "sample"}, {"sharpness": 0.5}):
        with pytest.raises(UserError, match=r"^method\.name: mwer is minimum-risk with method\.minimum_risk\.cand"):
            settings_from({"method": {"name": "mwer", "minimum_risk": other}})
    with pytest.raises(UserError, match=r"^method\.minimum_risk: a section, not a value"):
        settings_from({"method": {"name": "mwer", "minimum_risk": 3}})


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("rlooo", r"\(did you mean 'rloo'\?\); known: likelihood"),
        ("mwer+likelihood", r"; the mixture is method\.likelihood_weight=0\.1"),
        ("OCD", r" \(did you mean 'ocd'\?\); known: likelihood"),
        ("PPO", r" \(did you mean 'ppo'\?\); known: likelihood"),
        ("spg", r" \(the softmax policy gradient .* is not built; the nearest is 'raml'"),
    ],
)
def test_a_mistyped_alias_is_told(wrong: str, hint: str):
    with pytest.raises(UserError, match=f"^method\\.name: unknown method '{wrong[:4]}.*{hint}"):
        settings_from({"method": {"name": wrong}})


@pytest.mark.parametrize("wrong", [3, None, ["rloo"]])
def test_what_is_no_name_is_refused_as_ever(wrong: object):
    with pytest.raises(UserError, match=r"^method\.name: "):
        settings_from({"method": {"name": wrong}})


def test_a_comparison_is_told_the_label():
    settings = load_recipe("demo")
    for alias, label in (
        ("scst", "self-critical"),
        ("rloo+likelihood", "reinforce-multisample+likelihood"),
        ("MRT", "minimum-risk"),
    ):
        with pytest.raises(UserError, match=rf"unknown method '{alias[:3]}.*\(did you mean '{label[:12]}"):
            with_method(settings, alias)
    with pytest.raises(UserError, match=r"unknown method 'spg'.*the nearest is 'raml'"):
        with_method(settings, "spg")
