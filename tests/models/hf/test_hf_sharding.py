"""An actor whose weights are spread over two processes learns what one process learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from process_group import ProcessGroup
from seqcritic import evaluate, load_model
from seqcritic.training.checkpoint import CheckpointFolder
from support import outcome, records, train_here, updates_done, wait_until
from tiny_models import make_model
from tiny_texts import make_tokenizer, write_pairs

METHOD = ["method.name=actor-critic", "method.likelihood_weight=0.1", "method.kl_weight=0.1", "method.gamma_theta=0.5"]
NUMBERS = ("_loss", "_norm", "sampled_return", "valid_score", "divergence", "held_out_explained_variance")


def recipe_of(tmp_path: Path, *more: str) -> list[str]:
    if not (tmp_path / "pretrained").exists():
        model = make_model("t5", dropout=0.0)  # whose draws depend on who shares a batch
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.25)  # a tame one: steps of Adam must not blow rounding up
        model.save_pretrained(tmp_path / "pretrained")
        make_tokenizer("t5").save_pretrained(tmp_path / "pretrained")
    usual = ["data.maximum_length=20", "data.valid_size=8", "training.evaluate_every=2", "training.log_every=1"]
    sizes = [f"critic.{name}=8" for name in ("embedding", "hidden", "attention")]
    phases = [f"phases.{phase}.updates=2" for phase in ("actor", "critic", "train")]
    named = [f"actor.pretrained={tmp_path / 'pretrained'}", "score.name=bleu", "threads=1"]
    return ["tatoeba-de-en", *phases, *sizes, *usual, *named, *METHOD, *write_pairs(tmp_path), *more]


def train_sharded(tmp_path: Path, name: str, *more: str) -> Path:
    recipe, *overrides = recipe_of(tmp_path, "training.shard=true", *more)
    group = ProcessGroup(tmp_path / name, "train", recipe, "--out", tmp_path / name, *overrides)
    assert group.wait() == [0, 0], group.complaints()
    return tmp_path / name


def numbers(folder: Path) -> list[tuple[str, float]]:
    return [(name, value) for record in records(folder) for name, value in record.items() if name.endswith(NUMBERS)]


def networks(folder: Path) -> dict[str, torch.Tensor]:
    latest = CheckpointFolder(folder / "checkpoints").latest()
    assert latest is not None
    return safetensors.torch.load((latest / "networks.safetensors").read_bytes())


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-10), ("float32", 1e-6)])
def test_two_processes_do_what_one_does(precision: str, tolerance: float, tmp_path: Path):
    recipe, *overrides = recipe_of(tmp_path, f"precision={precision}")
    # 25 pairs in batches of up to 7: the processes have different numbers of examples.
    one = train_here(recipe, tmp_path / "one", *overrides, "training.batch=6")
    two = train_sharded(tmp_path, "two", f"precision={precision}", "training.batch=3")
    ours, theirs = numbers(two), numbers(one)
    assert len(ours) > 25
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    for (name, mine), (_, other) in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, rel=tolerance, abs=tolerance), name
    expected = networks(one)
    assert networks(two).keys() == expected.keys(), "a checkpoint is whole"
    for name, weight in networks(two).items():
        # Adam divides a gradient by its own size: where the gradient is rounding error, so is the step.
        torch.testing.assert_close(weight, expected[name], rtol=0, atol=tolerance if precision == "float64" else 1e-3)
    assert load_model(two).predict(["one two"]) == load_model(one).predict(["one two"])
    assert evaluate(two).score == pytest.approx(evaluate(one).score)


def test_a_sharded_run_is_resumed_to_the_bit(tmp_path: Path):
    whole = train_sharded(tmp_path, "whole", "training.batch=4")
    recipe, *overrides = recipe_of(tmp_path, "training.shard=true", "training.batch=4", "training.checkpoint_seconds=0")
    group = ProcessGroup(tmp_path / "killed", "train", recipe, "--out", tmp_path / "killed", *overrides)
    wait_until(lambda: updates_done(tmp_path / "killed") >= 3, group)
    group.kill(0, 1)
    group.wait()
    assert outcome(train_sharded(tmp_path, "killed", "training.batch=4", "training.checkpoint_seconds=0")) == outcome(
        whole
    )


def test_one_process_is_refused_in_one_line(tmp_path: Path, refusal: Any):
    recipe, *overrides = recipe_of(tmp_path, "training.shard=true")
    told = refusal("train", recipe, "--out", str(tmp_path / "run"), *overrides)
    assert "training.shard: there is one process to spread the actor over" in told


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["actor.lora.rank=2"], "training.shard: with actor.lora or actor.freeze"),
        (["actor.kind=gru"], "training.shard: RecurrentActor cannot be spread"),
    ],
)
def test_what_cannot_be_spread_is_refused_in_one_line(overrides: list[str], message: str, tmp_path: Path):
    recipe, *usual = recipe_of(tmp_path, "training.shard=true", *overrides)
    usual = [each for each in usual if "actor.kind" not in str(overrides) or "actor.pretrained" not in each]
    group = ProcessGroup(tmp_path / "run", "train", recipe, "--out", tmp_path / "run", *usual)
    assert group.wait() == [2, 2], group.complaints()
    assert [message in line for line in group.complaints()] == [True]
