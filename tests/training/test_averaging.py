"""The mean of several evaluated actors as a run's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from test_composing import KillAfter, Killed

from seqcritic import Callback, load_model, load_recipe, train
from seqcritic.training.averaging import KeptActors
from support import outcome, records, write_recipe


def kept(best: bool, higher_is_better: bool) -> KeptActors:
    actors = KeptActors(2, best, higher_is_better)
    for value, score in ((1.0, 50.0), (2.0, 40.0), (4.0, 45.0)):
        actors.add(score, {"weight": torch.tensor([value]), "count": torch.tensor(int(value))})
    return actors


@pytest.mark.parametrize(
    ("best", "higher_is_better", "expected"), [(True, False, 3.0), (True, True, 2.5), (False, True, 3.0)]
)
def test_the_best_or_the_last_are_kept(best, higher_is_better, expected):
    mean = kept(best, higher_is_better).mean()
    assert mean is not None
    assert mean["weight"].item() == expected
    assert mean["count"].item() == 4, "what cannot be averaged is that of the last"


def test_one_actor_has_no_mean():
    alone = KeptActors(3, best=True, higher_is_better=True)
    assert alone.mean() is None
    alone.add(1.0, {"weight": torch.tensor([1.0])})
    assert alone.mean() is None


def test_what_is_kept_goes_through_a_checkpoint():
    actors, again = kept(True, False), KeptActors(2, best=True, higher_is_better=False)
    again.load_tensors(actors.tensors())
    for each in (actors, again):
        each.add(30.0, {"weight": torch.tensor([8.0]), "count": torch.tensor(8)})
    assert torch.equal(again.mean()["weight"], actors.mean()["weight"])


class Collect(Callback):
    """Keeps the actors of the last phase that are evaluated."""

    def __init__(self) -> None:
        self.seen: list[dict[str, torch.Tensor]] = []

    def on_phase(self, run: Any, phase: str) -> None:
        self.seen.clear()

    def on_evaluation(self, run: Any, scores: Mapping[str, float]) -> None:
        self.seen.append(run.learner.actor_weights())


@pytest.mark.parametrize(("size", "counted"), [(2, 2), (50, 5)])  # updates 0, 5, 10, 15, 20: more there are not
def test_the_result_is_the_mean_of_the_actors_that_were_evaluated(size: int, counted: int, tmp_path):
    settings = load_recipe(write_recipe(tmp_path), [f"training.average={size}", "training.average_of=last"])
    collected = Collect()
    run = train(settings, tmp_path / "run", [collected])
    assert len(collected.seen) == 5
    last = collected.seen[-counted:]
    for name, weight in load_model(run).actor.state_dict().items():
        expected = torch.stack([weights[name] for weights in last]).mean(dim=0)
        assert torch.allclose(weight.float(), expected.float(), atol=1e-7), name
    (told,) = (record for record in records(run) if record["kind"] == "average")
    assert told["actors"] == counted


def test_a_run_s_result_is_the_mean_and_resumes_to_the_bit(tmp_path):
    changes = ["training.average=3", "training.average_of=last"]
    settings = load_recipe(write_recipe(tmp_path), changes)
    whole = train(settings, tmp_path / "whole")
    with pytest.raises(Killed):
        train(settings, tmp_path / "killed", [KillAfter(53)])
    assert outcome(train(settings, tmp_path / "killed")) == outcome(whole)
    told = [record for record in records(whole) if record["kind"] == "average"]
    assert [(record["phase"], record["actors"]) for record in told] == [("train", 3.0)]
    plain = train(load_recipe(tmp_path / "tiny.yaml"), tmp_path / "plain")
    weights = [next(load_model(run).actor.parameters()) for run in (whole, plain)]
    assert not torch.equal(*weights)
