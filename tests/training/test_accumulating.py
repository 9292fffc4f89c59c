"""An update of two batches of B is one of a batch of 2B, in the memory of one; resuming and costs follow."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from process_group import ProcessGroup
from run_differences import differences
from seqcritic.data.task import build_task
from seqcritic.draws import Shard
from seqcritic.settings.io import load_recipe, settings_from
from seqcritic.training import calibration
from seqcritic.training.phases import in_updates
from support import (
    METHODS,
    Fork,
    Refusal,
    method_overrides,
    outcome,
    records,
    slow_but,
    train_here,
    updates_done,
    wait_until,
    write_recipe,
)

LABELS = (*METHODS, "reinforce+likelihood", "reinforce-critic+likelihood")
QUICK = ("actor-critic+likelihood", "ppo", "minimum-risk", "reinforce", "beam-search-optimization", "dagger")
RARELY = ["training.checkpoint_seconds=1000", "training.log_every=1", "training.evaluate_every=50"]
FEW = ["phases.actor.updates=3", "phases.critic.updates=3", "phases.train.updates=6"]
DROPOUT = ["actor.dropout=0.2", "critic.dropout=0.2"]
EXACT = [*FEW, *DROPOUT, *RARELY, "precision=float64"]


@pytest.mark.parametrize("label", slow_but(QUICK, LABELS))
def test_two_batches_do_what_one_of_twice_the_size_does(label: str, recipe: Path, tmp_path: Path):
    overrides = [*method_overrides(label), *EXACT]
    whole = train_here(recipe, tmp_path / "whole", *overrides, "training.batch=8")
    parts = train_here(recipe, tmp_path / "parts", *overrides, "training.batch=4", "training.accumulate=2")
    assert records(whole)[-1]["examples"] == records(parts)[-1]["examples"] > 0
    assert [record["compute"] for record in records(whole)] == [record["compute"] for record in records(parts)]
    assert max(differences(whole, parts)) < 1e-9


def test_what_a_method_observes_is_that_of_all_parts(recipe: Path, tmp_path: Path):
    overrides = [
        *method_overrides("actor-critic+likelihood"),
        *EXACT,
        "method.correction=auto",
        "phases.train.updates=24",
    ]
    whole = train_here(recipe, tmp_path / "whole", *overrides, "training.batch=8")
    parts = train_here(recipe, tmp_path / "parts", *overrides, "training.batch=4", "training.accumulate=2")
    assert max(differences(whole, parts)) < 1e-9
    found = [record["correction"] for record in records(parts) if "correction" in record]
    assert found[0] == 1.0 != found[-1]


def test_two_processes_accumulate_their_own_parts(recipe: Path, tmp_path: Path):
    overrides = [*method_overrides("actor-critic"), *EXACT]
    whole = train_here(recipe, tmp_path / "whole", *overrides, "training.batch=16")
    command = ["train", recipe, "--out", tmp_path / "parts", *overrides, "training.batch=2", "training.accumulate=4"]
    group = ProcessGroup(tmp_path / "log", *command)
    assert group.wait() == [0, 0], group.complaints()
    assert max(differences(whole, tmp_path / "parts")) < 1e-9


def test_parts_of_unequal_size_count_by_their_examples(tmp_path: Path, refusal: Refusal):
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    lines = [f"{' '.join(words[: 1 + n % 7])}\t{' '.join(words[n % 5 : n % 5 + 1 + n % 3])}\n" for n in range(37)]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(lines), encoding="utf-8")
    split = {"pairs": str(pairs)}
    data = {"task": "translation", "train": split, "valid": split, "test": split}
    recipe = write_recipe(tmp_path, data=data, score={"name": "bleu"})
    overrides = [*method_overrides("actor-critic"), *EXACT]
    # 37 pairs make 5 batches of 7 or 8.
    whole = train_here(recipe, tmp_path / "whole", *overrides, "training.batch=8")
    parts = train_here(recipe, tmp_path / "parts", *overrides, "training.batch=4", "training.accumulate=2")
    assert max(differences(whole, parts)) < 1e-9
    line = refusal("train", recipe, "--out", tmp_path / "many", *overrides, "training.batch=1", "training.accumulate=8")
    assert "training.accumulate: a batch of 7 is too small for 8 parts" in line


def test_the_comparison_notices_parts_that_are_weighed_wrongly(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    overrides = [*method_overrides("reinforce"), *EXACT]
    whole = train_here(recipe, tmp_path / "whole", *overrides, "training.batch=8")
    monkeypatch.setattr(torch, "full_like", lambda tensor, share: torch.ones_like(tensor))
    parts = train_here(recipe, tmp_path / "parts", *overrides, "training.batch=4", "training.accumulate=2")
    assert min(differences(whole, parts)) > 1e-3


def test_one_part_is_in_memory_at_once(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from seqcritic.training.learner import Learner

    honest, events = Learner._outcomes, []
    backward = torch.Tensor.backward

    def outcomes(self, batch, shard: Shard, *rest):
        for found in honest(self, batch, shard, *rest):
            events.append(len(shard))
            yield found

    def noted_backward(self, *rest, **options):
        events.append("backward")
        backward(self, *rest, **options)

    monkeypatch.setattr(Learner, "_outcomes", outcomes)
    monkeypatch.setattr(torch.Tensor, "backward", noted_backward)
    short = ["phases.actor.updates=1", "phases.critic.updates=0", "phases.train.updates=0"]
    train_here(recipe, tmp_path / "run", *short, "training.batch=2", "training.accumulate=3")
    assert events == [2, "backward"] * 3


def test_a_killed_run_resumes_exactly(recipe: Path, tmp_path: Path, refusal: Refusal):
    overrides = [*method_overrides("ppo"), "training.batch=2", "training.accumulate=3"]
    whole = train_here(recipe, tmp_path / "whole", *overrides)
    command = ("train", recipe, "--out", tmp_path / "run", *overrides)
    process = Fork(*command)
    wait_until(lambda: updates_done(tmp_path / "run") >= 44, process)
    process.kill()
    process.wait()
    other = ("train", recipe, "--out", tmp_path / "run", *method_overrides("ppo"), "training.batch=6")
    assert "training.accumulate: 3 -> 1" in refusal(*other)
    assert outcome(train_here(recipe, tmp_path / "run", *overrides)) == outcome(whole)


def test_epochs_and_costs_count_all_examples_of_an_update(recipe: Path, monkeypatch: pytest.MonkeyPatch):
    tree = load_recipe(recipe, {"training.batch": 5, "training.accumulate": 4}).model_dump(mode="json")
    tree["phases"]["train"]["epochs"] = 2.0
    settings = settings_from(tree)
    assert in_updates(settings, epoch_size=100, num_processes=2).phases.train.updates == 5
    task, sizes = build_task(settings.data), []
    honest = calibration.Learner.update

    def update(self, batch, *rest):
        sizes.append(len(batch))
        return honest(self, batch, *rest)

    monkeypatch.setattr(calibration.Learner, "update", update)
    calibration.measure_seconds(settings, ["reinforce"], task, warm_up_updates=1, rounds=1)
    assert sizes == [20, 20, 20]
