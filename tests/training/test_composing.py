"""Runs that are composed of Python objects: like a recipe's, killed and resumed, loaded from the folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from composed import LstmActor, UndescribedActor, shared_letters

from seqcritic import (
    Callback,
    Trainer,
    UserError,
    compare,
    compare_runs,
    evaluate,
    export,
    load_model,
    load_recipe,
    train,
)
from seqcritic.data.task import build_task
from seqcritic.training.learner import recipe_networks
from support import outcome, write_recipe

SHORT = {
    "phases": {phase: {"updates": 12, "learning_rate": 0.01} for phase in ("actor", "critic", "train")},
    "training": {"batch": 8, "evaluate_every": 5, "log_every": 2, "checkpoint_seconds": 0},
    "critic": {"embedding": 8, "hidden": 8, "attention": 8},
}


class Killed(Exception):
    """What ends a run in the middle."""


class KillAfter(Callback):
    """Breaks a run off after so many updates, without a word to it."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_update(self, run: Any, measurements: Mapping[str, float]) -> None:
        if run.progress.total_updates == self.updates:
            raise Killed


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    return load_recipe(write_recipe(tmp_path))


def compose(recipe: Any, out: Path, kind: type[LstmActor] = LstmActor, **changes: Any) -> Trainer:
    torch.manual_seed(1)
    task = build_task(recipe.data)
    options = {"score": "edit-distance", "method": "actor-critic", "settings": SHORT}
    options |= changes
    return Trainer(kind(task.codec.num_target_tokens, 8), task, out=out, **options)


def test_a_recipe_s_parts_composed_by_hand_are_the_recipe_s_run_to_the_bit(recipe, tmp_path):
    expected = train(recipe, tmp_path / "recipe")
    task = build_task(recipe.data)
    networks = recipe_networks(recipe, task.codec.num_source_tokens, task.codec.num_target_tokens)
    trainer = Trainer(
        networks.actor,
        task,
        "edit-distance",
        critic=networks.critic,
        out=tmp_path / "composed",
        settings=recipe,
    )
    assert trainer.settings == recipe
    trainer.train()
    assert outcome(tmp_path / "composed") == outcome(expected)


@pytest.mark.parametrize("method", ["actor-critic", "mixer", "minimum-risk", "actor-critic+likelihood"])
def test_an_actor_of_one_s_own_is_killed_and_resumed_to_the_bit(recipe, tmp_path, method):
    whole = compose(recipe, tmp_path / "whole", method=method).train()
    for updates in (5, 15, 20):
        with pytest.raises(Killed):
            compose(recipe, tmp_path / "killed", method=method, callbacks=[KillAfter(updates)]).train()
    resumed = compose(recipe, tmp_path / "killed", method=method).train()
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    lines = ["the old cat", "some friends"]
    assert resumed.predict(lines) == whole.predict(lines) == load_model(tmp_path / "killed").predict(lines)


def test_the_folder_alone_is_enough_where_all_parts_describe_themselves(recipe, tmp_path):
    trainer = compose(recipe, tmp_path / "run", score=shared_letters)
    assert trainer.settings.score.name == "composed:shared_letters"
    trainer.train()
    assert evaluate(tmp_path / "run").score_name == "composed:shared_letters"
    export(tmp_path / "run", tmp_path / "exported")
    assert load_model(tmp_path / "exported").actor.state_size == 8


def test_what_cannot_be_described_must_be_passed_again(recipe, tmp_path):
    trainer = compose(recipe, tmp_path / "run", UndescribedActor)
    actor = trainer.parts.actor
    assert trainer.train().actor is actor
    with pytest.raises(UserError, match="the actor of this run was passed from Python as an object"):
        load_model(tmp_path / "run")
    fresh = UndescribedActor(actor.num_tokens, 8)
    model = load_model(tmp_path / "run", actor=fresh)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(actor.parameters(), fresh.parameters(), strict=True))
    assert model.predict(["a cat"]) == load_model(tmp_path / "run", actor=actor).predict(["a cat"])


def test_runs_of_objects_are_compared(recipe, tmp_path):
    def exact(prediction: str, reference: str) -> float:
        return float(prediction == reference)

    options = {"kind": UndescribedActor, "score": exact}
    models = [
        compose(recipe, tmp_path / method, method=method, **options).train() for method in ("mixer", "likelihood")
    ]
    comparison = compare_runs(models)
    assert [row.label for row in comparison.rows] == ["mixer", "likelihood"]
    assert [row.score for row in comparison.rows] == [evaluate(model).score for model in models]
    with pytest.raises(UserError, match="the actor of this run was passed from Python as an object"):
        compare_runs([tmp_path / "mixer", tmp_path / "likelihood"])
    with pytest.raises(UserError, match=r"^actor: compare trains in processes of their own, .* compare_runs$"):
        compare(models[0].settings, ["likelihood"], out=tmp_path / "comparison")


def test_another_optimiser_is_resumed_too(recipe, tmp_path):
    momentum = partial(torch.optim.SGD, lr=0.1, momentum=0.9)
    compose(recipe, tmp_path / "whole", optimiser=momentum).train()
    with pytest.raises(Killed):
        compose(recipe, tmp_path / "killed", optimiser=momentum, callbacks=[KillAfter(17)]).train()
    compose(recipe, tmp_path / "killed", optimiser=momentum).train()
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    compose(recipe, tmp_path / "adam").train()
    assert outcome(tmp_path / "adam") != outcome(tmp_path / "whole")


def test_another_actor_in_the_same_folder_is_refused(recipe, tmp_path):
    compose(recipe, tmp_path / "run").train()
    task = build_task(recipe.data)
    other = Trainer(
        LstmActor(task.codec.num_target_tokens, 9), task, "edit-distance", out=tmp_path / "run", settings=SHORT
    )
    with pytest.raises(UserError, match=r"actor.arguments.size: 8 -> 9"):
        other.train()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "mixxer"}, "unknown method 'mixxer' .did you mean 'mixer'"),
        ({"score": "bleuu"}, "unknown score 'bleuu' .did you mean 'bleu'"),
        ({"score": 3}, "score: int is not the name of a score"),
        ({"settings": {"training.batchh": 3}}, "unknown setting 'training.batchh'"),
        ({"settings": {"training": 3}}, "training: a section, not a value"),
        ({"settings": {3: 3}}, "settings are named by text"),
        ({"critic": torch.nn.Linear(1, 1)}, "critic: Linear is not a Critic"),
    ],
)
def test_faults_are_told_in_one_line_without_a_flag(recipe, tmp_path, changes, message):
    with pytest.raises(UserError, match=message) as caught:
        compose(recipe, tmp_path / "run", **changes)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)
