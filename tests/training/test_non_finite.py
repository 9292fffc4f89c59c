"""A number that is not finite ends the run with exit code 3 and leaves the last good checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from seqcritic.cli import main
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Method, Outcome
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Score
from seqcritic.methods.build import build_method
from seqcritic.settings.tree import Settings
from seqcritic.training import learner
from seqcritic.training.checkpoint import CheckpointFolder
from seqcritic.training.model import load_model
from support import SHORT, complaints, method_overrides, outcome, train_here

FAULTY_UPDATE = 3
Spoil = Callable[[Outcome, Networks], Outcome]


def spoil_loss(outcome: Outcome, networks: Networks) -> Outcome:
    """Return an infinite loss, and the measurement that made it so."""
    name = next(name for name in outcome.measurements if name.endswith("_loss"))
    return Outcome(outcome.loss * math.inf, outcome.measurements | {name: outcome.loss.detach() * math.inf})


def spoil_gradient(outcome: Outcome, networks: Networks) -> Outcome:
    """Return the same loss with a gradient that is not a number: the root has an infinite slope at 0."""
    trained = networks.actor if networks.critic is None else networks.critic
    zero = sum(parameter.sum() for parameter in trained.parameters()) * 0
    return Outcome(outcome.loss + zero.sqrt(), outcome.measurements)


class Spoiled(Method):
    """A method that goes wrong at one update."""

    def __init__(self, method: Method, spoil: Spoil) -> None:
        self.method, self.spoil, self.calls = method, spoil, 0
        self.trains = method.trains

    def __call__(self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float) -> Outcome:
        self.calls += 1
        outcome = self.method(networks, batch, generator, progress)
        return self.spoil(outcome, networks) if self.calls == FAULTY_UPDATE else outcome


@pytest.mark.parametrize(
    ("label", "phase", "spoil", "quantity"),
    [
        ("likelihood", "actor", spoil_loss, "the loss (likelihood_loss)"),
        ("actor-critic", "critic", spoil_loss, "the loss (critic_loss)"),
        ("reinforce", "train", spoil_loss, "the loss (actor_loss)"),
        ("likelihood", "train", spoil_gradient, "the gradient of the actor"),
        ("reinforce-critic", "critic", spoil_gradient, "the gradient of the critic"),
    ],
)
def test_the_run_ends_and_the_checkpoint_stays(
    label: str,
    phase: str,
    spoil: Spoil,
    quantity: str,
    recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    def build(settings: Settings, name: str, score: Score) -> Method:
        method = build_method(settings, name, score)
        return Spoiled(method, spoil) if name == phase else method

    overrides = [*SHORT, *method_overrides(label)]
    with monkeypatch.context() as patch:
        patch.setattr(learner, "build_method", build)
        assert main(["train", str(recipe), "--out", str(tmp_path / "run"), *overrides]) == 3
    [line] = complaints(capsys.readouterr().err)
    latest = CheckpointFolder(tmp_path / "run/checkpoints").latest()
    assert line.startswith(f"seqcritic: {quantity} is not finite at update {FAULTY_UPDATE} of phase '{phase}'; ")
    assert f"the last good checkpoint is {latest};" in line
    assert f"phases.{phase}.learning_rate" in line
    assert len(load_model(tmp_path / "run").predict(["a cat"])) == 1
    mended = train_here(recipe, tmp_path / "run", *overrides)
    assert outcome(mended) == outcome(train_here(recipe, tmp_path / "whole", *overrides))
