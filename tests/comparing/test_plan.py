"""The runs of a comparison, what each waits for, and updates that make their compute equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqcritic.comparing.plan import PlannedRun, budget, check_budget, plan_runs, run_settings
from seqcritic.comparing.rows import Row, method_rows, own_rows, parse_rows
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.errors import UserError
from seqcritic.settings.io import settings_from
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import write_folder
from seqcritic.training.progress import Progress

COSTS = {"critic": 2.0, "reinforce": 1.5, "reinforce-critic": 3.0, "actor-critic": 3.5, "actor-critic+likelihood": 4.0}
LABELS = ("actor-critic+likelihood", "likelihood", "reinforce")
ROWS = method_rows(LABELS)


def settings(**tree: object) -> Settings:
    phases = {"actor": {"updates": 7}, "critic": {"updates": 10}, "train": {"updates": 20}}
    return settings_from({"phases": phases, "compare": {"costs": COSTS}} | tree)


def kinds(runs: list[PlannedRun]) -> list[str]:
    return [run.kind for run in runs]


def last_run(given: Settings, label: str, out: Path) -> PlannedRun:
    """Return the run of a method itself."""
    return plan_runs(given, method_rows((label,)), 1, out)[-1]


def critic_of_cost(folder: Path, compute: float) -> None:
    """Write what a finished pre-training of the critic leaves."""
    parts = {"settings": {"seed": 1}, "data": "x", "progress": Progress(compute=compute).to_dict()}
    write_folder(folder / "model", {"critic": {}}, parts)


def test_every_seed_has_its_own_actor_and_critic(tmp_path: Path):
    runs = plan_runs(settings(seed=5), ROWS, 2, tmp_path)
    assert kinds(runs) == ["actor", "critic", "likelihood", "reinforce", "actor-critic+likelihood"] * 2
    assert [run.seed for run in runs] == [5] * 5 + [6] * 5
    assert len({run.folder for run in runs}) == 10
    actor, critic, likelihood, reinforce, actor_critic = runs[5:]
    assert actor.needs == ()
    assert critic.needs == likelihood.needs == reinforce.needs == (actor.folder,)
    assert actor_critic.needs == (actor.folder, critic.folder)


def test_runs_wait_only_for_runs_before_them(tmp_path: Path):
    done: set[Path] = set()
    for run in plan_runs(settings(), ROWS, 3, tmp_path):
        assert set(run.needs) <= done
        done.add(run.folder)


def test_what_is_not_needed_is_not_planned(tmp_path: Path):
    assert kinds(plan_runs(settings(), method_rows(("likelihood", "reinforce")), 1, tmp_path)) == [
        "actor",
        "likelihood",
        "reinforce",
    ]
    given = settings(start={"actor": "a"})
    assert kinds(plan_runs(given, ROWS, 1, tmp_path))[0] == "critic"
    given = settings(start={"actor": "a", "critic": "c"})
    runs = plan_runs(given, ROWS, 1, tmp_path)
    assert kinds(runs) == ["likelihood", "reinforce", "actor-critic+likelihood"]
    assert all(run.needs == () for run in runs)


def test_unknown_methods_are_refused_before_anything_runs(tmp_path: Path):
    with pytest.raises(UserError, match="unknown method 'actor-critc'"):
        plan_runs(settings(), method_rows(("likelihood", "actor-critc")), 1, tmp_path)


def test_the_budget_is_given_or_what_actor_critic_costs():
    assert budget(settings()) == 10 * 2.0 + 20 * 4.0
    assert budget(settings(compare={"budget": 55})) == 55
    typical = settings(compare={})
    assert budget(typical) == pytest.approx(10 * typical.compare.cost("critic") + 20 * 3.8)


@pytest.mark.parametrize(
    ("label", "updates"),
    [
        ("likelihood", 100),
        ("reinforce", round(100 / 1.5)),
        ("reinforce-critic", round((100 - 18) / 3.0)),
        ("actor-critic+likelihood", round((100 - 18) / 4.0)),
    ],
)
def test_updates_make_the_compute_equal(label: str, updates: int, tmp_path: Path):
    critic_of_cost(tmp_path / "seed-3/critic", 18.0)
    planned = run_settings(settings(seed=3), last_run(settings(seed=3), label, tmp_path))
    assert planned.phases.train.updates == updates
    assert planned.method.label == label
    assert planned.seed == 3
    assert planned.start.actor == str(tmp_path / "seed-3/actor")
    assert planned.start.critic == (str(tmp_path / "seed-3/critic") if "critic" in label else None)


def test_the_shared_runs_only_pre_train(tmp_path: Path):
    runs = plan_runs(settings(seed=3), ROWS, 1, tmp_path)
    actor, critic = (run_settings(settings(), run) for run in runs[:2])
    assert (actor.method.name, actor.phases.actor.updates, actor.phases.train.updates) == ("likelihood", 7, 0)
    assert actor.start.actor is None
    assert (critic.method.name, critic.phases.critic.updates, critic.phases.train.updates) == ("actor-critic", 10, 0)
    assert critic.start.actor == str(tmp_path / "seed-3/actor")


def test_soft_values_are_pre_trained_apart(tmp_path: Path):
    labels = ("actor-critic", "entropy-actor-critic", "entropy-actor-critic+likelihood", "dagger")
    runs = {run.kind: run for run in plan_runs(settings(), method_rows(labels), 1, tmp_path)}
    assert list(runs) == ["actor", "critic", "soft-critic", *labels]
    waits = {label: runs[label].needs[-1].name for label in labels}
    assert waits == dict(zip(labels, ("critic", "soft-critic", "soft-critic", "critic"), strict=True))
    for kind, temperature in (("critic", 0.0), ("soft-critic", 0.04)):
        planned = run_settings(settings(), runs[kind])
        assert (planned.method.temperature, planned.phases.critic.updates) == (temperature, 10)
        assert planned.phases.train.updates == 0
    critic_of_cost(tmp_path / "seed-1/critic", 18.0)
    critic_of_cost(tmp_path / "seed-1/soft-critic", 10.0)
    plain, soft = (run_settings(settings(), runs[label]) for label in labels[:2])
    assert plain.start.critic == str(tmp_path / "seed-1/critic")
    assert soft.start.critic == str(tmp_path / "seed-1/soft-critic")
    assert soft.phases.train.updates == round(90 / soft.compare.cost("entropy-actor-critic"))
    assert kinds(plan_runs(settings(), method_rows(labels[1:2]), 1, tmp_path)) == ["actor", "soft-critic", labels[1]]
    without = settings(method={"entropy_actor_critic": {"temperature": 0}})
    assert kinds(plan_runs(without, method_rows(labels[1:2]), 1, tmp_path)) == ["actor", "critic", labels[1]]


def test_a_budget_that_the_critic_eats_up_is_refused(tmp_path: Path):
    critic_of_cost(tmp_path / "seed-1/critic", 99.0)
    with pytest.raises(UserError, match=r"compare\.budget: 100 leaves nothing for actor-critic "):
        run_settings(settings(), last_run(settings(), "actor-critic", tmp_path))


def test_such_a_budget_is_refused_before_the_critic_is_trained_where_its_cost_is_known():
    small = {"costs": COSTS, "budget": 20}
    with pytest.raises(UserError, match=r"compare\.budget: 20 leaves nothing for actor-critic\+likelihood"):
        check_budget(settings(compare=small), ROWS)
    check_budget(settings(compare=small), method_rows(("likelihood", "reinforce")))
    check_budget(settings(compare=small, start={"actor": "a", "critic": "c"}), ROWS)
    rules = {"explained_variance": 0.5, "patience": 2, "flat": {"epochs": 1}, "token_correlation": 0.5}
    for name, rule in rules.items():
        check_budget(settings(compare=small, phases={"critic": {"updates": 10, name: rule}}), ROWS)


def test_trained_networks_of_the_recipe_are_used(tmp_path: Path):
    critic_of_cost(tmp_path / "trained", 10.0)
    given = settings(start={"actor": "a", "critic": str(tmp_path / "trained")})
    planned = run_settings(given, last_run(given, "actor-critic", tmp_path))
    assert (planned.start.actor, planned.start.critic) == ("a", str(tmp_path / "trained"))
    assert planned.phases.train.updates == round(90 / 3.5)


def test_overrides_of_a_method_reach_its_run(tmp_path: Path):
    compare = {"costs": COSTS, "overrides": {"reinforce": {"phases.train.learning_rate": 0.5}}}
    given = settings(compare=compare)
    runs = {label: run_settings(given, last_run(given, label, tmp_path)) for label in ("likelihood", "reinforce")}
    assert runs["reinforce"].phases.train.learning_rate == 0.5
    assert runs["likelihood"].phases.train.learning_rate == settings().phases.train.learning_rate != 0.5


def test_all_stands_for_every_method_and_names_are_not_repeated():
    assert method_rows(("all",)) == tuple(Row(name, name) for name in registered_methods())
    mixed = method_rows(("likelihood", " all+likelihood", "likelihood", ""))
    labels = tuple(row.label for row in mixed)
    assert labels == (
        "likelihood",
        *(f"{name}+likelihood" for name in registered_methods() if name != "likelihood"),
    )


ROW = {"patient": {"method.gamma_phi": 0.5}}


def test_a_row_with_settings_of_its_own_has_a_critic_of_its_own(tmp_path: Path):
    given = settings(method={"name": "actor-critic"})
    rows = (*method_rows(("actor-critic",)), *own_rows(given, ROW))
    runs = plan_runs(given, rows, 1, tmp_path)
    assert [str(run.folder.relative_to(tmp_path / "seed-1")) for run in runs] == [
        *("actor", "critic", "actor-critic", "patient/critic", "patient/actor-critic")
    ]
    assert runs[-1].needs == (runs[0].folder, runs[3].folder)
    assert [run_settings(given, run).method.gamma_phi for run in (runs[1], runs[3])] == [given.method.gamma_phi, 0.5]
    critic_of_cost(tmp_path / "seed-1/critic", 18.0)
    critic_of_cost(tmp_path / "seed-1/patient/critic", 30.0)
    plain, diagnosed = (run_settings(given, run) for run in (runs[2], runs[4]))
    assert (plain.phases.train.updates, diagnosed.phases.train.updates) == (round(82 / 3.5), round(70 / 3.5))
    assert diagnosed.start.critic == str(tmp_path / "seed-1/patient/critic")
    assert diagnosed.start.actor == plain.start.actor == str(tmp_path / "seed-1/actor")


def test_a_row_that_costs_more_makes_fewer_updates_of_the_same_budget(tmp_path: Path):
    given = settings(method={"name": "reinforce"})
    rows = own_rows(given, {"as it is": {}, "dear": {"compare.costs.reinforce": 5.0}})
    runs = plan_runs(given, rows, 1, tmp_path)[1:]
    assert [run.folder.name for run in runs] == ["as it is", "dear"]
    assert [run_settings(given, run).phases.train.updates for run in runs] == [round(100 / 1.5), 20]


def test_a_row_may_have_another_method_than_the_recipe():
    given = settings(method={"name": "actor-critic", "correction": 0.5})
    overrides = {"method.name": "reinforce", "method.likelihood_weight": 0.25}
    (row,) = own_rows(given, {"mixed": overrides})
    assert row.method == "reinforce+likelihood"
    own = row.settings(given).method
    assert (own.label, own.likelihood_weight, own.correction) == ("reinforce+likelihood", 0.25, 0.0)
    (plain,) = own_rows(given, {"as it is": {}})
    assert (plain.method, plain.own_critic, plain.own_cost) == ("actor-critic", False, False)


def test_rows_are_read_as_the_command_line_has_them():
    rows = parse_rows(["half: method.correction=0.5 score.shaping=false", " as it is : ", "b: score.name='bleu'"])
    assert rows["as it is"] == {}
    (row, *_) = own_rows(settings(), {"half": rows["half"]})
    assert row.overrides == {"method.correction": 0.5, "score.shaping": False}
    assert str(row) == "half: method.correction=0.5 score.shaping=False"


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (["method.samples=4"], "row 'method.samples=4': write it as \"NAME: key=value key=value\""),
        ([": method.samples=4"], "row ': method.samples=4': write it as"),
        (["a: x", "b:"], "row 'a': 'x': an override here has the form section.key=value"),
        (["a:", "a:"], "row 'a': named twice"),
        (["a: score.name='b"], "row 'a': No closing quotation"),
        (["a: method.gamma=1"], "row 'a': unknown setting 'method.gamma'"),
        (["a: method.name=reinforec"], "row 'a': compare.methods: unknown method 'reinforec'"),
        (["a: method.gamma_phi=much"], "row 'a': method.gamma_phi: input should be a valid number"),
        (["a: data.noise=0.5"], "row 'a': data.noise: shared by all rows; a row may change settings of method, critic"),
        (["a: seed=4"], "row 'a': seed: shared by all rows"),
        (["a: phases.train.updates=4"], "row 'a': phases.train.updates: follows from the budget"),
        (["critic: method.gamma_phi=1"], "row 'critic': 'critic' is the name of another row, a method or a shared run"),
        (["reinforce:"], "row 'reinforce': 'reinforce' is the name of another row"),
        (["a=1:", "a-1:"], "row 'a-1': 'a=1' is the name of another row"),
        (["../a:"], "row '../a': a label names a folder"),
        (["..:"], "row '..': a label names a folder"),
    ],
)
def test_rows_that_cannot_run_are_refused_in_one_line(texts: list[str], line: str):
    with pytest.raises(UserError) as caught:
        own_rows(settings(), parse_rows(texts))
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
