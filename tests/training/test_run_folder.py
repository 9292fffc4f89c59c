"""Whose a folder is: finished runs, other settings, other processes, files of other origin."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seqcritic.cli import main
from seqcritic.errors import UserError
from seqcritic.settings.io import load_recipe
from seqcritic.training.run_folder import RunFolder, read_settings
from support import SHORT, Refusal, method_overrides, snapshot, start, train_here, wait_until

OVERRIDES = method_overrides("actor-critic")


def test_a_finished_run_is_left_as_it_is(recipe: Path, finished_run: Path, capsys: pytest.CaptureFixture[str]):
    before = snapshot(finished_run)
    assert main(["train", str(recipe), "--out", str(finished_run), *OVERRIDES]) == 0
    assert f"{finished_run} is finished; nothing to do" in capsys.readouterr().err
    assert snapshot(finished_run) == before


def test_other_settings_are_refused_by_name(recipe: Path, finished_run: Path, refusal: Refusal):
    before = snapshot(finished_run)
    line = refusal("train", recipe, "--out", finished_run, *OVERRIDES, "actor.hidden=9", "phases.train.updates=21")
    assert "actor.hidden: 8 -> 9; phases.train.updates: 20 -> 21" in line
    assert "seed" not in line
    assert snapshot(finished_run) == before


def test_a_changed_text_is_refused(recipe: Path, finished_run: Path, tmp_path: Path, refusal: Refusal):
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    shutil.rmtree(run / "model")
    text = Path(load_recipe(recipe).data.train[0])
    original = text.read_bytes()
    text.write_bytes(original + b"one more line of text\n")
    try:
        assert "the text has changed" in refusal("train", recipe, "--out", run, *OVERRIDES)
    finally:
        text.write_bytes(original)


def test_a_second_process_is_refused(recipe: Path, tmp_path: Path, refusal: Refusal):
    out = tmp_path / "run"
    overrides = [*OVERRIDES, "phases.train.updates=100000"]
    first = start("train", recipe, "--out", out, *overrides)
    try:
        wait_until((out / "metrics.jsonl").exists, first)
        line = refusal("train", recipe, "--out", out, *overrides)
        assert line == f"seqcritic: {out}: another process is training in this folder"
        assert first.poll() is None
    finally:
        first.terminate()
        first.communicate()


def test_the_lock_is_given_back(recipe: Path, tmp_path: Path):
    settings, other = load_recipe(recipe), load_recipe(recipe, ["seed=2"])
    with RunFolder(tmp_path, settings) as folder:
        folder.claim()
        with pytest.raises(UserError, match="another process"), RunFolder(tmp_path, settings):
            pass
    with pytest.raises(UserError, match="seed: 1 -> 2"), RunFolder(tmp_path, other):
        pass
    with RunFolder(tmp_path, settings):
        pass


@pytest.mark.parametrize("name", ["model", "checkpoints", "metrics.jsonl"])
def test_files_of_other_origin_are_not_overwritten(name: str, recipe: Path, tmp_path: Path, refusal: Refusal):
    precious = tmp_path / name / "thesis" if name != "metrics.jsonl" else tmp_path / name
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("the only copy", encoding="utf-8")
    assert f"has a {name} but no config.yaml" in refusal("train", recipe, "--out", tmp_path)
    assert precious.read_text(encoding="utf-8") == "the only copy"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("lr: 3\n", "unknown setting 'lr'"),
        ("a: [1\nb: 2\n", ":2: not valid YAML"),
        ("just words\n", "not a YAML mapping"),
    ],
)
def test_a_foreign_configuration_is_named(content: str, complaint: str, recipe: Path, tmp_path: Path, refusal: Refusal):
    config = tmp_path / "config.yaml"
    config.write_text(content, encoding="utf-8")
    line = refusal("train", recipe, "--out", tmp_path)
    assert str(config) in line
    assert complaint in line
    assert config.read_text(encoding="utf-8") == content


def test_a_command_that_failed_on_its_text_can_be_mended(recipe: Path, tmp_path: Path, refusal: Refusal):
    assert "no such file" in refusal("train", recipe, "--out", tmp_path / "run", "data.train=missing.txt")
    assert "no such run" in refusal("train", recipe, "--out", tmp_path / "run", "start.actor=missing")
    train_here(recipe, tmp_path / "run", *SHORT)
    assert read_settings(tmp_path / "run").data.train == load_recipe(recipe).data.train


def test_runs_without_updates_export_their_networks(recipe: Path, tmp_path: Path):
    train_here(recipe, tmp_path / "run", *(f"phases.{phase}.updates=0" for phase in ("actor", "critic", "train")))
    assert (tmp_path / "run/model/critic.safetensors").is_file()
