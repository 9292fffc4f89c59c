"""Workers answer, fail with the name of their log, and the workloads and products are what they claim to be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from matrix_shapes import Products, layers_of
from our_training import Training
from seqcritic.contracts.batch import Batch, pad
from seqcritic.methods import rollout
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.settings import GruActorSettings
from side_by_side.environments import PEERS, _digest
from side_by_side.machine import OtherLoad, warning
from side_by_side.workers import Worker
from side_by_side.workloads import WORKLOADS

SCRIPT = """
from side_by_side.serve import serve

class Counting:
    def __init__(self, request):
        self.done = request["start"]
    def describe(self):
        print("noise that is no answer")
        return {"parameters": 3}
    def run(self, steps):
        self.done += steps
        return {"done": self.done}

serve({"counting": Counting})
"""


def test_a_worker_keeps_its_jobs_and_times_them(tmp_path: Path):
    script = tmp_path / "worker.py"
    script.write_text(SCRIPT)
    with Worker(sys.executable, script, 1, tmp_path / "log.txt") as worker:
        assert worker.ask({"do": "build", "name": "one", "kind": "counting", "start": 5}) == {"parameters": 3}
        worker.ask({"do": "run", "name": "one", "steps": 2})
        answer = worker.ask({"do": "run", "name": "one", "steps": 2})
        assert (answer["done"], answer["steps"]) == (9, 2)
        assert answer["wall"] > 0
        with pytest.raises(SystemExit, match=r"worker.py: KeyError.*\n.*log.txt"):
            worker.ask({"do": "run", "name": "unknown", "steps": 1})
    assert "noise" in (tmp_path / "log.txt").read_text()


def test_a_worker_that_dies_is_named(tmp_path: Path):
    script = tmp_path / "worker.py"
    script.write_text("raise SystemExit(1)")
    with Worker(sys.executable, script, 1, tmp_path / "log.txt") as worker:
        with pytest.raises(SystemExit, match="the process has ended"):
            worker.ask({"do": "build", "name": "one", "kind": "counting"})


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=lambda workload: workload.name)
def test_workloads_are_the_same_for_everybody(workload):
    (first, second), again = workload.batches(2), workload.batches(2)
    assert [first, second] == again
    assert first != second
    assert len(first) == workload.batch
    lengths = {len(side) for pair in first for side in pair}
    assert lengths == set(range(workload.shortest, workload.longest + 1))
    assert all(0 <= token < workload.num_content for pair in first for side in pair for token in side)
    assert all(len(source) == len(target) for source, target in first)


@pytest.mark.parametrize("output_layer", [{}, {"output_width": 2}, {"tied": True}], ids=["wide", "projected", "tied"])
def test_the_products_are_those_of_every_weight_matrix(output_layer: dict[str, Any]):
    settings = GruActorSettings(embedding=3, hidden=4, attention=5, **output_layer)
    actor = RecurrentActor(settings, 11, 12, torch.Generator().manual_seed(1))
    batch = Batch(*pad([[1, 2, 3], [4]]), *pad([[1], [2, 3]]))
    layers = layers_of(settings, 12, batch)
    weights = {
        name: parameter.numel()
        for name, parameter in actor.named_parameters()
        if parameter.dim() == 2 and "energy" not in name
    }
    embeddings = weights.pop("encoder.embedding.weight"), weights.pop("decoder.embedding.weight")
    expected = sum(weights.values()) + (embeddings[1] if settings.tied else 0)
    assert sum(layer.inputs * layer.outputs for layer in layers) == expected
    # Three products of 2 operations for each weight and row: forward, and backward to the input and to the weight.
    assert Products(layers).operations == sum(6 * layer.inputs * layer.outputs * sum(layer.rows) for layer in layers)
    assert [layer.rows for layer in layers[:2]] == [(6,), (2, 2, 1, 1)]  # lengths 4 and 2 with their end tokens


@pytest.mark.parametrize(("lengths", "steps"), [("exact", 11), ("trained", 13)])
def test_samples_have_the_lengths_they_are_given(lengths: str, steps: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rollout, "sample", rollout.sample)
    job = Training({"kind": "reinforce", "workload": "a10", "lengths": lengths})
    widths: list[int] = []
    limited = rollout.sample

    def watched(*arguments: Any) -> Any:
        drawn = limited(*arguments)
        widths.append(drawn.tokens.shape[1])
        return drawn

    monkeypatch.setattr(rollout, "sample", watched)
    told = job.run(1)
    assert widths == [steps]
    assert told["length_ratio"] == pytest.approx(1.1, abs=0.001 if lengths == "exact" else 0.3)


def test_lengths_that_are_no_longer_forced_are_noticed(monkeypatch: pytest.MonkeyPatch):
    original = rollout.sample
    monkeypatch.setattr(rollout, "sample", original)
    job = Training({"kind": "reinforce", "workload": "a10", "lengths": "exact"})
    monkeypatch.setattr(rollout, "sample", original)
    with pytest.raises(RuntimeError, match="no longer sample"):
        job.run(1)


def test_only_load_worth_telling_is_told():
    assert warning(None) is None
    assert warning(0.02) is None
    assert "1.5 of" in (warning(1.5) or "")


def test_own_work_is_not_other_load():
    load = OtherLoad()
    cores = load.cores()
    assert cores is None or cores >= 0


def test_an_environment_is_remade_when_its_requirements_change():
    digests = {_digest(peer, ["torch==1"]) for peer in PEERS.values()}
    assert len(digests) == len(PEERS)
    assert _digest(PEERS["joeynmt"], ["torch==2"]) not in digests
