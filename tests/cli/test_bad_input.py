"""Every bad input gets one line on standard error and exit code 2, and nothing is written for it."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from seqcritic.cli import main
from seqcritic.files import seal
from seqcritic.training import checkpoint
from seqcritic.training.model import load_model
from support import SHORT, Refusal, complaints, method_overrides, run, snapshot, write_text

ACTOR_CRITIC = method_overrides("actor-critic")


@pytest.mark.parametrize("command", ["train", "compare", "validate"])
@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("data.lenght=3", "unknown setting 'data.lenght' (did you mean 'data.length'?)"),
        ("data.noise=7", "data.noise: input should be less than or equal to 1, not 7"),
        ("training.batch=many", "training.batch: input should be a valid integer"),
        ("training.batch", "'training.batch': an override here has the form section.key=value"),
        ("name=[\n1", "name: '[\\n1' is not a valid value"),
        ("a\nb=1", "unknown setting 'a b'"),
    ],
)
def test_bad_settings(command: str, override: str, complaint: str, recipe: Path, refusal: Refusal):
    assert refusal(command, recipe, override).startswith(f"seqcritic: {complaint}")


def test_bad_recipes(tmp_path: Path, refusal: Refusal):
    assert "no recipe and no file 'dmo' (did you mean 'demo'?)" in refusal("train", "dmo")
    broken = tmp_path / "broken.yaml"
    broken.write_text("seed: 1\ndata: {length: [\n", encoding="utf-8")
    assert refusal("train", broken).startswith(f"seqcritic: {broken}:3: not valid YAML: ")


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("missing.txt", None, "data.{split}: no such file: {path}"),
        ("empty.txt", b"", "data.{split}: {path} is empty"),
        ("folder", "folder", "data.{split}: {path} is a folder"),
        ("latin.txt", b"words enough\nund M\xfcll\n", "data.{split}: {path}:2: not valid UTF-8"),
        ("cut.gz", gzip.compress(os.urandom(999))[:-50], "data.{split}: {path}:"),
        ("short.txt", b"a\nbc\n\n", "data.{split}: no sentence of {path} has 6 characters"),
        ("blank.txt", b"\n\n", "data.{split}: no sentence of {path} has 6 characters"),
    ],
)
def test_bad_text(
    split: str, name: str, content: bytes | str | None, complaint: str, recipe: Path, tmp_path: Path, refusal: Refusal
):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "folder":
        path.mkdir()
    line = refusal("train", recipe, "--out", tmp_path / "run", f"data.{split}={path}")
    assert line.startswith(f"seqcritic: {complaint.format(split=split, path=path)}")
    assert {item.name for item in (tmp_path / "run").iterdir()} == {".lock"}


def test_a_bad_training_text_is_the_only_line(recipe: Path, tmp_path: Path):
    refused = run("train", recipe, "--out", tmp_path / "run", "data.train=missing.txt")
    assert refused.returncode == 2
    assert refused.stdout == ""
    told = "data.train: no such file: missing.txt; check the path, or give data.train=FILE if it has moved"
    assert refused.stderr == f"seqcritic: {told}\n"


def test_a_bad_test_text_shows_before_a_comparison_trains(recipe: Path, tmp_path: Path, refusal: Refusal):
    line = refusal("compare", recipe, "--out", tmp_path / "out", "data.test=missing.txt")
    assert line.startswith("seqcritic: data.test: no such file: missing.txt; check the path, or give data.test=FILE")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["train", "compare"])
@pytest.mark.parametrize("place", ["file", "file/run", "/proc/run"])
def test_an_output_folder_that_cannot_be_made(place: str, command: str, recipe: Path, tmp_path: Path, refusal: Refusal):
    (tmp_path / "file").write_text("precious", encoding="utf-8")
    assert refusal(command, recipe, "--out", tmp_path / place).startswith("seqcritic: out: cannot ")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "precious"


def test_a_full_disk_keeps_the_last_checkpoint(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    write, out = checkpoint.write_synced, tmp_path / "run"

    def fill_up(path: Path, content: bytes) -> None:
        if path.parent.name == ".00000003.partial":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    monkeypatch.setattr(checkpoint, "write_synced", fill_up)
    assert main(["train", str(recipe), "--out", str(out), *SHORT]) == 2
    [line] = complaints(capsys.readouterr().err)
    assert f"cannot write {out / 'checkpoints/00000003'}: No space left on device" in line
    assert sorted(path.name for path in (out / "checkpoints").iterdir()) == ["00000001", "00000002"]
    assert load_model(out).description["progress"]["update"] == 2


def make_start(kind: str, run_folder: Path, folder: Path) -> Path:
    """Return a place that is no actor of the tiny recipe's sizes."""
    path = folder / kind
    if kind == "pickle.pt":
        torch.save({"weight": torch.zeros(2)}, path)
    elif kind == "of-others":
        path.mkdir()
        (path / "description.json").write_text(json.dumps({"format": "of others", "digests": {}}), encoding="utf-8")
    elif kind == "empty":
        path.mkdir()
    elif kind == "damaged":
        shutil.copytree(run_folder / "model", path)
        (path / "actor.safetensors").write_bytes(b"\x00" * 100)
    elif kind == "without-actor":
        shutil.copytree(run_folder / "model", path)
        description = json.loads((path / "description.json").read_text(encoding="utf-8"))
        del description["digests"]["actor"]
        (path / "description.json").write_text(json.dumps(seal(description)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("missing", "no such run or model: {path}"),
        ("pickle.pt", "{path} is a file; seqcritic reads folders it has written (never pickles"),
        ("empty", "{path} is not a seqcritic checkpoint or model: it has no description.json"),
        ("of-others", "{path}/description.json is not of the format"),
        ("damaged", "{path}/actor.safetensors is damaged (its digest is not the one written with it)"),
        ("without-actor", "{path} holds no actor"),
    ],
)
@pytest.mark.parametrize("use", ["start", "evaluate", "predict"])
def test_bad_models(
    use: str, kind: str, complaint: str, recipe: Path, finished_run: Path, tmp_path: Path, refusal: Refusal
):
    path = make_start(kind, finished_run, tmp_path)
    command = ("train", recipe, "--out", tmp_path / "run", f"start.actor={path}") if use == "start" else (use, path)
    place = "start.actor: " if use == "start" else ""
    assert refusal(*command).startswith(f"seqcritic: {place}{complaint.format(path=path)}")


def test_models_of_other_sizes(recipe: Path, finished_run: Path, tmp_path: Path, refusal: Refusal):
    command = ("train", recipe, "--out", tmp_path / "run", f"start.actor={finished_run}", *ACTOR_CRITIC)
    line = refusal(*command, "actor.hidden=9")
    assert line.startswith(f"seqcritic: start.actor: {finished_run} does not fit the network of this configuration")
    line = refusal(*command, f"start.critic={finished_run}", "critic.reads_actor_states=false")
    assert line.startswith(f"seqcritic: start.critic: {finished_run} does not fit the network of this configuration")


def test_bad_runs_for_a_report(finished_run: Path, tmp_path: Path, refusal: Refusal):
    page = tmp_path / "page.html"
    page.write_text("the old page", encoding="utf-8")
    assert "missing is not a run: it has no config.yaml" in refusal("report", tmp_path / "missing", "--out", page)
    assert "is not a run: it has no config.yaml" in refusal("report", finished_run, tmp_path, "--out", page)
    (tmp_path / "comparison.json").write_text('{"rows": 3}', encoding="utf-8")
    assert "comparison.json is damaged" in refusal("report", tmp_path, "--out", page)
    assert page.read_text(encoding="utf-8") == "the old page"
    folder = tmp_path / "folder.html"
    folder.mkdir()
    for out in (folder, page / "below.html"):
        assert f"--out: cannot write {out}: " in refusal("report", tmp_path / "missing", "--out", out), "told first"
    assert "give a file that ends in .html, .json, .md, .csv or .tex" in refusal(
        "report", finished_run, "--out", tmp_path / "page.pdf"
    )


def test_runs_on_different_test_sets_are_not_compared(
    recipe: Path, finished_run: Path, tmp_path: Path, refusal: Refusal
):
    other = write_text(tmp_path / "other.txt", seed=9)
    for name, override in {"text": f"data.test={other}", "noise": "data.noise=0.5"}.items():
        assert main(["train", str(recipe), "--out", str(tmp_path / name), *SHORT, override]) == 0
        line = refusal("report", finished_run, tmp_path / name, "--out", tmp_path / "page.html")
        assert "the runs were not evaluated by the same score on the same text" in line
    assert not (tmp_path / "page.html").exists()


def test_bad_arguments_of_evaluate(finished_run: Path, refusal: Refusal):
    before = snapshot(finished_run)
    assert "has the form data.key=value" in refusal("evaluate", finished_run, "seed=2")
    assert "unknown setting 'data.tests' (did you mean 'data.test'?)" in refusal(
        "evaluate", finished_run, "data.tests=x"
    )
    assert "data.test: no such file: x" in refusal("evaluate", finished_run, "data.test=x")
    assert snapshot(finished_run) == before


@pytest.mark.parametrize("methods", ["likelihod", "likelihood,actor_critic", "likelihood+likelihood"])
def test_unknown_methods_of_a_comparison(methods: str, recipe: Path, tmp_path: Path, refusal: Refusal):
    line = refusal("compare", recipe, "--out", tmp_path / "out", "--methods", methods)
    assert line.startswith("seqcritic: compare.methods: unknown method '")
    assert "did you mean" in line
    assert not (tmp_path / "out").exists()


def test_a_comparison_of_nothing(recipe: Path, refusal: Refusal):
    assert "methods: name at least one method" in refusal("compare", recipe, "--methods", ", ,")
