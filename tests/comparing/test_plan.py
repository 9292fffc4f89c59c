"""The runs of a comparison, what each waits for, and updates that make their compute equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqcritic.comparing.compare import expand_labels
from seqcritic.comparing.plan import PlannedRun, budget, check_budget, plan_runs, run_settings
from seqcritic.config import Settings
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.errors import UserError
from seqcritic.settings_io import settings_from
from seqcritic.training.checkpoint import write_folder
from seqcritic.training.progress import Progress

COSTS = {"critic": 2.0, "reinforce": 1.5, "reinforce-critic": 3.0, "actor-critic": 3.5, "actor-critic+likelihood": 4.0}
LABELS = ("actor-critic+likelihood", "likelihood", "reinforce")


def settings(**tree: object) -> Settings:
    phases = {"actor": {"updates": 7}, "critic": {"updates": 10}, "train": {"updates": 20}}
    return settings_from({"phases": phases, "compare": {"costs": COSTS}} | tree)


def kinds(runs: list[PlannedRun]) -> list[str]:
    return [run.kind for run in runs]


def critic_of_cost(folder: Path, compute: float) -> None:
    """Write what a finished pre-training of the critic leaves."""
    parts = {"settings": {"seed": 1}, "data": "x", "progress": Progress(compute=compute).to_dict()}
    write_folder(folder / "model", {"critic": {}}, parts)


def test_every_seed_has_its_own_actor_and_critic(tmp_path: Path):
    runs = plan_runs(settings(seed=5), LABELS, 2, tmp_path)
    assert kinds(runs) == ["actor", "critic", "likelihood", "reinforce", "actor-critic+likelihood"] * 2
    assert [run.seed for run in runs] == [5] * 5 + [6] * 5
    assert len({run.folder for run in runs}) == 10
    actor, critic, likelihood, reinforce, actor_critic = runs[5:]
    assert actor.needs == ()
    assert critic.needs == likelihood.needs == reinforce.needs == (actor.folder,)
    assert actor_critic.needs == (actor.folder, critic.folder)


def test_runs_wait_only_for_runs_before_them(tmp_path: Path):
    done: set[Path] = set()
    for run in plan_runs(settings(), LABELS, 3, tmp_path):
        assert set(run.needs) <= done
        done.add(run.folder)


def test_what_is_not_needed_is_not_planned(tmp_path: Path):
    assert kinds(plan_runs(settings(), ("likelihood", "reinforce"), 1, tmp_path)) == [
        "actor",
        "likelihood",
        "reinforce",
    ]
    given = settings(start={"actor": "a"})
    assert kinds(plan_runs(given, LABELS, 1, tmp_path))[0] == "critic"
    given = settings(start={"actor": "a", "critic": "c"})
    runs = plan_runs(given, LABELS, 1, tmp_path)
    assert kinds(runs) == ["likelihood", "reinforce", "actor-critic+likelihood"]
    assert all(run.needs == () for run in runs)


def test_unknown_methods_are_refused_before_anything_runs(tmp_path: Path):
    with pytest.raises(UserError, match="unknown method 'actor-critc'"):
        plan_runs(settings(), ("likelihood", "actor-critc"), 1, tmp_path)


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
    run = PlannedRun(label, 3, tmp_path / "seed-3" / label, ())
    planned = run_settings(settings(), run)
    assert planned.phases.train.updates == updates
    assert planned.method.label == label
    assert planned.seed == 3
    assert planned.start.actor == str(tmp_path / "seed-3/actor")
    assert planned.start.critic == (str(tmp_path / "seed-3/critic") if "critic" in label else None)


def test_the_shared_runs_only_pre_train(tmp_path: Path):
    actor = run_settings(settings(), PlannedRun("actor", 3, tmp_path / "seed-3/actor", ()))
    assert (actor.method.name, actor.phases.actor.updates, actor.phases.train.updates) == ("likelihood", 7, 0)
    assert actor.start.actor is None
    critic = run_settings(settings(), PlannedRun("critic", 3, tmp_path / "seed-3/critic", ()))
    assert (critic.method.name, critic.phases.critic.updates, critic.phases.train.updates) == ("actor-critic", 10, 0)
    assert critic.start.actor == str(tmp_path / "seed-3/actor")


def test_soft_values_are_pre_trained_apart(tmp_path: Path):
    labels = ("actor-critic", "entropy-actor-critic", "entropy-actor-critic+likelihood", "dagger")
    runs = {run.kind: run for run in plan_runs(settings(), labels, 1, tmp_path)}
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
    assert kinds(plan_runs(settings(), labels[1:2], 1, tmp_path)) == ["actor", "soft-critic", labels[1]]
    without = settings(method={"entropy_actor_critic": {"temperature": 0}})
    assert kinds(plan_runs(without, labels[1:2], 1, tmp_path)) == ["actor", "critic", labels[1]]


def test_a_budget_that_the_critic_eats_up_is_refused(tmp_path: Path):
    critic_of_cost(tmp_path / "seed-1/critic", 99.0)
    with pytest.raises(UserError, match=r"compare\.budget: 100 leaves nothing for actor-critic "):
        run_settings(settings(), PlannedRun("actor-critic", 1, tmp_path / "seed-1/actor-critic", ()))


def test_such_a_budget_is_refused_before_the_critic_is_trained_where_its_cost_is_known():
    small = {"costs": COSTS, "budget": 20}
    with pytest.raises(UserError, match=r"compare\.budget: 20 leaves nothing for actor-critic\+likelihood"):
        check_budget(settings(compare=small), LABELS)
    check_budget(settings(compare=small), ("likelihood", "reinforce"))
    check_budget(settings(compare=small, start={"actor": "a", "critic": "c"}), LABELS)
    phases = {"critic": {"updates": 10, "explained_variance": 0.5}}
    check_budget(settings(compare=small, phases=phases), LABELS)


def test_trained_networks_of_the_recipe_are_used(tmp_path: Path):
    critic_of_cost(tmp_path / "trained", 10.0)
    given = settings(start={"actor": "a", "critic": str(tmp_path / "trained")})
    planned = run_settings(given, PlannedRun("actor-critic", 1, tmp_path / "seed-1/actor-critic", ()))
    assert (planned.start.actor, planned.start.critic) == ("a", str(tmp_path / "trained"))
    assert planned.phases.train.updates == round(90 / 3.5)


def test_overrides_of_a_method_reach_its_run(tmp_path: Path):
    compare = {"costs": COSTS, "overrides": {"reinforce": {"phases.train.learning_rate": 0.5}}}
    runs = {
        label: run_settings(settings(compare=compare), PlannedRun(label, 1, tmp_path / label, ()))
        for label in ("likelihood", "reinforce")
    }
    assert runs["reinforce"].phases.train.learning_rate == 0.5
    assert runs["likelihood"].phases.train.learning_rate == settings().phases.train.learning_rate != 0.5


def test_all_stands_for_every_method_and_names_are_not_repeated():
    assert expand_labels(("all",)) == tuple(registered_methods())
    mixed = expand_labels(("likelihood", " all+likelihood", "likelihood", ""))
    assert mixed == ("likelihood", *(f"{name}+likelihood" for name in registered_methods() if name != "likelihood"))
