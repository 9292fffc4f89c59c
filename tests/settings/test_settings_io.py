"""Settings: recipes, overrides, what differs, and faults that name the dotted path."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from seqcritic.errors import UserError
from seqcritic.settings.io import (
    differences,
    flatten,
    load_recipe,
    recipe_names,
    set_leaf,
    set_leaves,
    settings_from,
    to_yaml,
    with_method,
)
from seqcritic.settings.methods import method_labels
from seqcritic.settings.tree import Settings
from support import Refusal


@pytest.mark.parametrize("name", recipe_names())
def test_packaged_recipes_are_valid_and_described(name: str):
    settings = load_recipe(name)
    assert settings.name == name
    assert settings.description


def test_yaml_keeps_every_setting():
    overrides = ["seed=7", "phases.train.learning_rate=1e-5", "data.train=a.txt, b.gz", "description='é: #'"]
    settings = load_recipe("demo", [*overrides, "compare.overrides.reinforce={seed: 3}"])
    assert settings_from(yaml.safe_load(to_yaml(settings))) == settings
    assert settings.data.train == ("a.txt", "b.gz")
    assert settings.phases.train.learning_rate == 1e-5


def test_an_override_of_one_section_spares_another_that_shares_its_anchor(tmp_path: Path):
    path = tmp_path / "recipe.yaml"
    path.write_text("actor: &sizes {hidden: 8}\ncritic: *sizes\n", encoding="utf-8")
    settings = load_recipe(path, ["actor.hidden=9"])
    assert (settings.actor.hidden, settings.critic.hidden) == (9, 8)


@pytest.mark.parametrize(
    ("recipe", "override", "complaint"),
    [
        ("tatoeba-de-en", "seed=1", "critic.from_actor: the critic would read the reference with "),
        ("demo", "actor.encoder=window", "critic.from_actor: the critic would read the reference with "),
        ("demo", "actor.tied=true", "critic.from_actor: the critic would read the reference with "),
        ("demo", "critic.hidden=30", r"critic.from_actor: critic.hidden must be actor.hidden, 64$"),
    ],
)
def test_a_critic_begins_as_an_actor_of_its_own_kind_only(recipe: str, override: str, complaint: str):
    with pytest.raises(UserError, match=f"^{complaint}"):
        load_recipe(recipe, ["critic.from_actor=true", override])


@pytest.mark.parametrize("known", ["lookahead", "optimal-completion"])
def test_what_is_known_is_added_only_where_every_token_is_rewarded(known: str):
    with pytest.raises(UserError, match=f"^critic.residual_on={known} needs score.shaping=true"):
        load_recipe("demo", [f"critic.residual_on={known}", "score.shaping=false"])


def test_best_completions_are_known_of_edit_distances_alone():
    load_recipe("demo", ["critic.residual_on=optimal-completion"])
    with pytest.raises(UserError, match=r"^critic.residual_on=optimal-completion knows the best completions of edit-d"):
        load_recipe("demo", ["critic.residual_on=optimal-completion", "score.name=bleu"])
    with pytest.raises(UserError, match=r"^critic.residual_on: "):
        load_recipe("demo", ["critic.residual_on=true"])


def test_a_lookahead_is_not_for_an_expert_that_follows_the_network():
    with pytest.raises(UserError, match=r"critic.residual_on: dagger's expert"):
        load_recipe("demo", ["critic.residual_on=lookahead", "method.name=dagger"])


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("data.lenght=3", "unknown setting 'data.lenght' (did you mean 'data.length'?)"),
        ("trainning.batch=3", "unknown setting 'trainning' (did you mean 'training'?)"),
        ("phases.train.update=3", "unknown setting 'phases.train.update' (did you mean 'phases.train.updates'?)"),
        ("zzz=3", "unknown setting 'zzz'"),
        ("name.x=3", "name.x: 'name' is a value, not a section"),
        ("data.noise=1.5", "data.noise: input should be less than or equal to 1, not 1.5"),
        ("data.noise=.nan", "data.noise: "),
        ("data.length=0", "data.length: input should be greater than or equal to 1, not 0"),
        ("data.length=ten", "data.length: input should be a valid integer"),
        ("data.length=2.5", "data.length: input should be a valid integer"),
        ("data.length=", "data.length: input should be a valid integer"),
        ("data={length: x}", "data.length: input should be a valid integer"),
        ("data=3", "data: a section, not a value; give data.task=… or data.train=…"),
        ("score=bleu", "score: a section, not a value; give score.name=… or score.normalise=…"),
        ("score.name=blue", "score.name: unknown score 'blue' (did you mean 'bleu'?); known: bleu, "),
        ("data.source_tokens={}", "data.source_tokens: not a setting of this data.task"),
        (
            "method.name=actor-critic+likelihood",
            "method.name: unknown method 'actor-critic+likelihood'; the mixture",
        ),
        ("threads=99999999999", "threads: input should be less than or equal to 1024"),
        ("actor.initial_range=.inf", "actor.initial_range: input should be a finite number"),
        (
            "method.name=reinforced",
            "method.name: unknown method 'reinforced' (did you mean 'reinforce'?); known: likelihood, reinforce",
        ),
        ("training.tracker=paper", "training.tracker: input should be 'tensorboard', 'wandb' or 'mlflow'"),
        ("data.minimum_length=11", "data.minimum_length is larger than data.length"),
        (
            "compare.costs.critc=2",
            "compare.costs: unknown method 'critc' (did you mean 'critic'?); known: critic, likelihood, ",
        ),
        ("compare.costs.critic=0", "compare.costs.critic: input should be greater than 0"),
        ("compare.costs.critic=.inf", "compare.costs.critic: input should be a finite number"),
        ("name=../elsewhere", "name: string should match pattern"),
        (
            "compare.overrides.critic={seed: 1}",
            "compare.overrides: unknown method 'critic' (did you mean 'actor-critic'?); known: likelihood, ",
        ),
        ("seed", "'seed': an override here has the form section.key=value"),
        ("=3", "'=3': an override here has the form section.key=value"),
        ("seed=[1", "seed: '[1' is not a valid value"),
        ("seed=2001-99-99", "seed: '2001-99-99' is not a valid value"),
    ],
)
def test_faults_name_the_dotted_path(override: str, complaint: str):
    with pytest.raises(UserError) as caught:
        load_recipe("demo", ["data.length=10", override])
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


def test_all_faults_are_told_at_once():
    with pytest.raises(UserError, match=r"data\.noise: .*; training\.batch: "):
        load_recipe("demo", ["data.noise=2", "training.batch=0"])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"seed: 1\ndata: [1\n", ":3: not valid YAML: expected ',' or ']'"),
        (b"seed: 1\nname: a: b\n", ":2: not valid YAML: mapping values are not allowed here"),
        (b"name: !!python/object/apply:os.getcwd []\n", ":1: not valid YAML: could not determine a constructor"),
        (b"name: \x00\n", ": not valid YAML: unacceptable character"),
        (b"name: 2001-99-99\n", ": not valid YAML: month must be in 1..12"),
        (b"just words\n", ": not a YAML mapping of settings"),
        (b"", ": not a YAML mapping of settings"),
        (b"name: \xff\n", ": cannot read the recipe: 'utf-8' codec"),
    ],
)
def test_bad_recipes_are_named_by_file_and_line(content: bytes, complaint: str, tmp_path: Path):
    path = tmp_path / "recipe.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_recipe(path)
    assert str(caught.value).startswith(f"{path}{complaint}")
    assert "\n" not in str(caught.value)


def test_a_missing_recipe_is_met_with_those_there_are(tmp_path: Path):
    with pytest.raises(UserError, match=r"no recipe and no file 'dem' \(did you mean 'demo'\?\); packaged .*demo"):
        load_recipe("dem")
    with pytest.raises(UserError, match="no recipe and no file"):
        load_recipe(tmp_path)


def test_differences_name_leaves_and_skip_the_description():
    ours = settings_from({"seed": 2, "description": "x", "compare": {"costs": {"critic": 2}}})
    assert differences(ours, Settings()) == [
        "seed: 1 -> 2",
        "compare.costs.critic: None -> 2.0",
        "compare.costs: {} -> None",
    ]
    assert differences(ours, ours) == []


def test_differences_skip_what_has_no_effect_on_training():
    assert differences(settings_from({"compare": {"beam": 10}}), Settings()) == []
    assert differences(settings_from({"compare": {"budget": 10}}), Settings()) == ["compare.budget: None -> 10"]


def test_a_folder_to_start_from_may_be_written_differently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    ways = ("runs/actor", "runs/actor/", "./runs/actor", "runs/../runs/actor", str(tmp_path / "runs/actor"))
    one = settings_from({"start": {"actor": ways[0], "critic": None}})
    for way in ways:
        assert differences(settings_from({"start": {"actor": way}}), one) == []
    for other in ("runs/critic", None):
        assert differences(settings_from({"start": {"actor": other}}), one) == [f"start.actor: runs/actor -> {other}"]


def test_leaves_are_set_and_flattened():
    tree = {"a": {"b": 1}}
    set_leaf(tree, "a.c.d", [2])
    assert flatten(tree) == {"a.b": 1, "a.c.d": [2]}


def test_overrides_may_be_limited_to_one_section():
    tree: dict[str, object] = {}
    set_leaves(tree, ["data.noise=0.5", "data.valid_size=null"], section="data")
    assert tree == {"data": {"noise": 0.5, "valid_size": None}}
    for override in ("seed=1", "database.x=1", "data=1", "noise"):
        with pytest.raises(UserError, match=r"an override here has the form data\.key=value"):
            set_leaves(tree, [override], section="data")


@pytest.mark.parametrize("label", method_labels())
def test_a_label_chooses_method_and_likelihood_weight(label: str):
    settings = with_method(load_recipe("demo", ["method.likelihood_weight=0.25"]), label)
    assert settings.method.label == label
    assert settings.method.likelihood_weight == (0.25 if "+" in label else 0)
    plain = with_method(load_recipe("demo", ["method.likelihood_weight=0"]), label)
    assert plain.method.likelihood_weight == (0.1 if "+" in label else 0)


def test_overrides_of_a_method_reach_only_it():
    settings = load_recipe("demo", ["compare.overrides.reinforce={phases.train.learning_rate: 0.5, method.samples: 3}"])
    assert with_method(settings, "reinforce").phases.train.learning_rate == 0.5
    assert with_method(settings, "reinforce").method.samples == 3
    assert with_method(settings, "actor-critic").method.samples == 1


@pytest.mark.parametrize("label", ["likelihoods", "likelihood+likelihood", "actor-critic+", "", "critic"])
def test_unknown_methods_are_refused(label: str):
    with pytest.raises(UserError, match=r"compare\.methods: unknown method"):
        with_method(Settings(), label)


def test_a_method_s_override_changes_one_leaf_however_it_is_written():
    given = ["compare.overrides.actor-critic+likelihood.method.gamma_phi=1"]
    settings = with_method(load_recipe("demo", given), "actor-critic+likelihood")
    assert (settings.method.gamma_phi, settings.method.gamma_theta) == (1.0, 0.01)
    assert settings.method.likelihood_weight == 0.1


def test_validate_refuses_what_compare_would(refusal: Refusal):
    assert "unknown method 'foo'" in refusal("validate", "demo", "compare.methods=likelihood,foo")


def test_a_correction_of_the_recipe_goes_with_its_method():
    assert load_recipe("pairs").method.correction == 0.5
    assert load_recipe("pairs", ["method.name=actor-critic"]).method.correction == 0.5
    assert load_recipe("pairs", ["method.name=reinforce"]).method.correction == 0
    assert load_recipe("pairs", {"method": {"name": "likelihood"}}).method.correction == 0
    given = {"method.name": "entropy-actor-critic", "method.correction": 0.25}
    assert load_recipe("pairs", given).method.correction == 0.25
    with pytest.raises(UserError, match=r"method.correction: only actor-critic"):
        load_recipe("pairs", ["method.name=reinforce", "method.correction=0.5"])
