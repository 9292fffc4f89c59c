"""Runs are diagnosed from the command line: one row each, as a table, as JSON and as a page."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch

from seqcritic.analysis.diagnosis_input import choose_examples, load_diagnosis_input
from seqcritic.cli import main
from seqcritic.files import unseal
from seqcritic.report.diagnosis import Diagnosis
from seqcritic.training.checkpoint import read_description, read_tensors, write_folder
from seqcritic.training.model import load_model, read_network
from support import Refusal, train_here

QUICK = ("--examples", "6", "--draws", "32")


@pytest.fixture(scope="module")
def written(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what one diagnosis of a run and its last checkpoint wrote."""
    out = tmp_path_factory.mktemp("diagnosis")
    checkpoint = sorted((finished_run / "checkpoints").iterdir())[-1]
    files = ["--out", str(out / "found.json"), "--out", str(out / "found.html")]
    assert main(["diagnose", str(finished_run), str(checkpoint), *QUICK, *files]) == 0
    return out


def read(path: Path) -> Diagnosis:
    return Diagnosis.from_dict(json.loads(path.read_text(encoding="utf-8")))


def test_every_place_is_a_row(written: Path, finished_run: Path) -> None:
    run, checkpoint = read(written / "found.json").rows
    assert run.label == finished_run.name
    assert checkpoint.label == f"{finished_run.name} at 60"
    assert (run.updates, run.examples, run.draws, run.split, run.method) == (60, 6, 32, "valid", "actor-critic")
    assert [row.name for row in run.estimators] == ["reinforce", "reinforce-critic", "actor-critic", "corrected"]
    assert all(row.variance.value > 0 and row.variance.error > 0 for row in run.estimators)
    assert run.gradient_norm > 0
    assert not run.is_known
    assert run.token_values is not None
    assert run.token_values.prefixes > 6
    # Finished, the checkpoint's actor is the best one too: the same draws give the same figures.
    assert checkpoint.estimators == run.estimators


def test_json_keeps_every_figure(written: Path) -> None:
    text = (written / "found.json").read_text(encoding="utf-8")
    assert unseal(json.loads(text)) == json.loads(json.dumps(read(written / "found.json").to_dict()))
    broken = json.loads(text)
    broken["rows"][0]["estimators"][1]["bias_square"] = [1.0]
    with pytest.raises(ValueError, match="bias_square"):
        Diagnosis.from_dict(broken)


def test_the_page_shows_every_estimator_and_runs_no_script(written: Path) -> None:
    page = (written / "found.html").read_text(encoding="utf-8")
    assert "script-src 'none'" in page
    assert "<script" not in page
    assert len(re.findall(r"<svg", page)) >= 2 * (7 + 2)
    assert page.count("REINFORCE, critic") > 4
    assert "more draws are needed" in page


def test_earlier_diagnoses_are_put_together(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = str(written / "found.json")
    assert main(["diagnose", found, found, "--out", str(tmp_path / "again.json")]) == 0
    assert len(read(tmp_path / "again.json").rows) == 4
    assert "the truth" in capsys.readouterr().out


def test_a_checkpoint_is_diagnosed_with_its_own_actor(finished_run: Path, tmp_path: Path) -> None:
    """The best actor so far is another one than the critic was learning beside."""
    source = sorted((finished_run / "checkpoints").iterdir())[-1]
    description = read_description(source)
    groups = {name: read_tensors(source, name, description) for name in description["digests"]}
    name = "actor.decoder.initial"
    groups["networks"] = groups["networks"] | {name: groups["networks"][name] + 1}
    write_folder(
        tmp_path / "snapshot", groups, {key: description[key] for key in ("settings", "data", "codec", "progress")}
    )
    diagnosed = load_diagnosis_input(tmp_path / "snapshot", "valid", 3)
    best = load_model(tmp_path / "snapshot").actor
    assert torch.equal(diagnosed.subject.actor.decoder.initial, best.decoder.initial + 1)
    assert torch.equal(diagnosed.subject.actor.encoder.embedding.weight, best.encoder.embedding.weight)


def test_examples_are_spread_over_the_set(finished_run: Path) -> None:
    diagnosed = load_diagnosis_input(finished_run, "test", 4)
    (batch,) = diagnosed.batches
    everything = load_model(finished_run).task.evaluation_set("test")
    texts = load_model(finished_run).task.codec.texts(batch.references)
    assert texts == [everything.references[row] for row in (0, 10, 19, 29)]
    assert sum(len(part) for part in choose_examples(everything, 1000)) == 30


def test_a_run_without_a_critic_is_refused(lively_run: Path, refusal: Refusal) -> None:
    line = refusal("diagnose", lively_run, *QUICK)
    assert line.endswith("has no critic (likelihood trains none); give a run of actor-critic or reinforce-critic")


def test_what_cannot_be_used_is_refused(finished_run: Path, tmp_path: Path, refusal: Refusal) -> None:
    assert "no such run or model" in refusal("diagnose", tmp_path / "nothing")
    assert "seqcritic: draws: at least 32" in refusal("diagnose", finished_run, "--draws", 31)
    assert "ends in .html or .json" in refusal("diagnose", finished_run, "--out", tmp_path / "page.txt")
    (tmp_path / "other.json").write_text('{"rows": 1}')
    assert "other.json is no diagnosis" in refusal("diagnose", tmp_path / "other.json")
    assert "is no diagnosis" in refusal("diagnose", tmp_path / "absent.json")


@pytest.mark.parametrize("precision", ["0", "1", "x"])
def test_a_precision_is_a_share(precision: str, finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["diagnose", str(finished_run), "--precision", precision])
    assert "is not a number between 0 and 1" in capsys.readouterr().err


def test_a_critic_that_is_not_finite_is_told(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = shutil.copytree(finished_run / "model", tmp_path / "model")
    description = read_description(run)
    groups = {name: read_tensors(run, name, description) for name in description["digests"]}
    groups["critic"] = {name: torch.full_like(tensor, math.nan) for name, tensor in groups["critic"].items()}
    write_folder(run, groups, {key: value for key, value in description.items() if key not in ("format", "digests")})
    assert main(["diagnose", str(run), *QUICK]) == 3
    assert "a value of the critic is not finite" in capsys.readouterr().err


def test_snapshots_of_a_run_are_diagnosed_one_by_one(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_here(recipe, tmp_path / "run", "training.snapshot_every=10")
    kept = sorted((run / "snapshots").iterdir())
    assert [folder.name for folder in kept] == ["00000000", "00000010", "00000020"]
    snapshots = [load_diagnosis_input(folder, "valid", 2) for folder in kept]
    assert [snapshot.label for snapshot in snapshots] == [f"run at {updates}" for updates in (40, 50, 60)]
    actors = [snapshot.subject.actor.decoder.initial for snapshot in snapshots]
    assert not torch.equal(actors[0], actors[1])
    final, _ = read_network(sorted((run / "checkpoints").iterdir())[-1], "networks")
    last = snapshots[-1].subject.critic.decoder.initial
    assert torch.equal(last, final["critic.decoder.initial"])
