"""Checkpoints: whole or not at all, read back exactly, refused when damaged or foreign."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
import torch

from seqcritic.errors import UserError
from seqcritic.training import checkpoint
from seqcritic.training.checkpoint import (
    CheckpointFolder,
    load_optimiser,
    load_weights,
    optimiser_tensors,
    prefixed,
    read_description,
    read_tensors,
    under,
    weights_of,
    write_folder,
)
from seqcritic.training.progress import Progress
from support import Refusal, method_overrides, snapshot, train_here

PARTS = {"settings": {"seed": 1}, "data": "abc", "progress": Progress(update=3).to_dict()}
OVERRIDES = method_overrides("actor-critic")


def tensors(number: float) -> dict[str, dict[str, torch.Tensor]]:
    return {"actor": {"weight": torch.tensor([number, 1 / 3])}, "optimisers": {}}


def test_what_was_written_is_read(tmp_path: Path):
    write_folder(tmp_path / "model", tensors(0.1), PARTS)
    description = read_description(tmp_path / "model")
    assert description.items() >= PARTS.items()
    read = read_tensors(tmp_path / "model", "actor", description)
    assert torch.equal(read["weight"], tensors(0.1)["actor"]["weight"])
    assert read_tensors(tmp_path / "model", "optimisers", description) == {}


def test_the_last_two_checkpoints_are_kept(tmp_path: Path):
    folder = CheckpointFolder(tmp_path)
    assert folder.latest() is None
    (tmp_path / "00000002 backup").mkdir()
    (tmp_path / ".00000009.partial").mkdir()
    for number in range(12):
        folder.write(tensors(number), PARTS)
    assert [path.name for path in folder.all()] == ["00000011", "00000012"]
    assert folder.latest() == tmp_path / "00000012"
    assert (tmp_path / "00000002 backup").is_dir()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = CheckpointFolder(tmp_path)
    folder.write(tensors(1.0), PARTS)
    before = snapshot(tmp_path / "00000001")

    def fail(path: Path, content: bytes) -> None:
        path.write_bytes(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "write_synced", fail)
    with pytest.raises(UserError, match=r"cannot write .*00000002: No space left on device"):
        folder.write(tensors(2.0), PARTS)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]
    assert snapshot(tmp_path / "00000001") == before


def test_weights_must_fit(tmp_path: Path):
    network = torch.nn.Linear(2, 3)
    with pytest.raises(UserError, match=r"start\.actor: x does not fit .*first of 1: weight"):
        load_weights(network, {"weight": torch.zeros(3, 3), "bias": torch.zeros(3)}, "start.actor: x")
    with pytest.raises(UserError, match="first of 2: bias"):
        load_weights(network, {"weight": torch.zeros(3, 2), "slope": torch.zeros(3)}, "x")
    load_weights(network, {"weight": torch.ones(3, 2), "bias": torch.ones(3)}, "x")
    assert network(torch.ones(1, 2)).tolist() == [[3.0, 3.0, 3.0]]


def test_an_optimiser_goes_on_where_it_was():
    def steps(optimiser: torch.optim.Adam, weight: torch.nn.Parameter, count: int) -> None:
        for _ in range(count):
            optimiser.zero_grad()
            (weight - 3.0).square().sum().backward()
            optimiser.step()

    weight = torch.nn.Parameter(torch.tensor([1.0, -1.0]))
    optimiser = torch.optim.Adam([weight], lr=0.1)
    steps(optimiser, weight, 3)
    copy = torch.nn.Parameter(weight.detach().clone())
    resumed = torch.optim.Adam([copy], lr=0.1)
    load_optimiser(resumed, {name: tensor.clone() for name, tensor in optimiser_tensors(optimiser).items()})
    steps(optimiser, weight, 2)
    steps(resumed, copy, 2)
    assert torch.equal(weight, copy)


def test_prefixes_keep_names_apart():
    groups = prefixed("critic", {"a.b": torch.ones(1)}) | prefixed("critic_2", {"a.b": torch.zeros(1)})
    assert {name: value.item() for name, value in under("critic", groups).items()} == {"a.b": 1.0}


@pytest.mark.parametrize("group", ["actor", "networks", "optimisers", "generator"])
def test_a_flipped_bit_in_a_checkpoint_is_found(
    group: str, recipe: Path, unfinished_run: Path, tmp_path: Path, refusal: Refusal
):
    run = Path(shutil.copytree(unfinished_run, tmp_path / "run"))
    latest = CheckpointFolder(run / "checkpoints").latest()
    assert latest is not None
    path = latest / f"{group}.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    before = snapshot(run)
    line = refusal("train", recipe, "--out", run, *OVERRIDES)
    assert f"{path} is damaged" in line
    assert f"remove the folder {latest}" in line
    assert snapshot(run) == before
    shutil.rmtree(latest)
    train_here(recipe, run, *OVERRIDES)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"format": "seqcritic-checkpoint-1", "dig', "is damaged"),
        ("", "is damaged"),
        ("\xff\xfe", "is damaged"),
        ('{"format": "seqcritic-checkpoint-1", "digests": {"actor": "0"}}', "is damaged (it has no settings)"),
        ('{"format": "of-others-7", "digests": {}}', "is not of the format seqcritic-checkpoint-1"),
        ('["seqcritic-checkpoint-1"]', "is not of the format seqcritic-checkpoint-1"),
    ],
)
def test_a_bad_description_is_refused(
    content: str, complaint: str, recipe: Path, unfinished_run: Path, tmp_path: Path, refusal: Refusal
):
    run = Path(shutil.copytree(unfinished_run, tmp_path / "run"))
    latest = CheckpointFolder(run / "checkpoints").latest()
    assert latest is not None
    (latest / "description.json").write_bytes(content.encode("latin-1"))
    assert f"{latest / 'description.json'} {complaint}" in refusal("train", recipe, "--out", run, *OVERRIDES)
    assert complaint in refusal("evaluate", latest)


def test_a_critic_is_used_as_it_was_trained(recipe: Path, finished_run: Path, tmp_path: Path, refusal: Refusal):
    given = ["method.name=actor-critic", f"start.critic={finished_run}", "critic.residual_on=lookahead"]
    line = refusal("train", recipe, "--out", tmp_path / "run", *given)
    assert "was trained with critic.residual_on=none; set it so" in line
    given = ["method.name=actor-critic", f"start.critic={finished_run}", "critic.columns=9"]
    line = refusal("train", recipe, "--out", tmp_path / "run", *given)
    assert "was trained with critic.columns=null; set it so" in line


@pytest.fixture(scope="module")
def unfinished_run(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished run as it was before its last checkpoint and its export."""
    run = Path(shutil.copytree(finished_run, tmp_path_factory.mktemp("unfinished") / "run"))
    shutil.rmtree(run / "model")
    latest = CheckpointFolder(run / "checkpoints").latest()
    assert latest is not None
    shutil.rmtree(latest)
    shutil.copytree(run / "checkpoints" / f"{int(latest.name) - 1:08d}", latest)
    return run


def test_what_a_network_keeps_beside_its_weights_is_stored_too():
    trained = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    trained.register_buffer("made_anew", torch.ones(2), persistent=False)
    trained(torch.randn(8, 2, generator=torch.Generator().manual_seed(0)))
    stored = {name: tensor.clone() for name, tensor in weights_of(trained).items()}
    assert {"1.running_mean", "1.running_var", "0.weight"} <= set(stored)
    assert "made_anew" not in stored
    fresh = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    load_weights(fresh, stored, "x")
    assert torch.equal(fresh[1].running_mean, trained[1].running_mean)
    assert bool(fresh[1].running_mean.any())
