"""Runs and comparisons that have been moved: all is found where it is now, and ends with the same bits."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from seqcritic.cli import main
from seqcritic.comparing import jobs
from seqcritic.training.run_folder import read_settings
from support import Refusal, method_overrides, outcome, start_in_forks, train_here, write_recipe, write_text

METHODS = ("likelihood", "actor-critic")


class Stopped(Exception):
    """Stands for a kill of the comparison."""


@pytest.fixture(scope="module")
def short_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe whose runs take less time than a process takes to start."""
    phases = {phase: {"updates": 6, "learning_rate": 0.01} for phase in ("actor", "critic", "train")}
    return write_recipe(tmp_path_factory.mktemp("moving"), phases=phases)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that a comparison starts."""
    return start_in_forks(monkeypatch)


@pytest.fixture(scope="module")
def comparison(short_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished comparison; copy it before changing it."""
    out = tmp_path_factory.mktemp("comparison") / "out"
    with pytest.MonkeyPatch.context() as patch:
        start_in_forks(patch)
        assert main(compare(short_recipe, out)) == 0
    return out


def compare(recipe: Path, out: Path, *overrides: str) -> list[str]:
    return ["compare", str(recipe), "--methods", ",".join(METHODS), "--jobs", "1", "--out", str(out), *overrides]


def figures(out: Path) -> dict[str, object]:
    """Return all of a comparison but the time it took."""
    found: dict[str, object] = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    rows = found["rows"]
    assert isinstance(rows, list)
    timeless = [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
    return {key: value for key, value in found.items() if key != "digest"} | {"rows": timeless}


def test_a_finished_comparison_is_reported_evaluated_and_resumed_elsewhere(
    short_recipe: Path, comparison: Path, tmp_path: Path, forks: list[str], capsys: pytest.CaptureFixture[str]
):
    here, there = Path(shutil.copytree(comparison, tmp_path / "here")), tmp_path / "far/away/there"
    pages = []
    for out in (here, there):
        if out == there:
            there.parent.mkdir(parents=True)
            here.rename(there)
        runs = [str(out / "seed-1" / name) for name in METHODS]
        assert main(["report", str(out), "--out", str(tmp_path / "comparison.json")]) == 0
        assert main(["report", *runs, "--out", str(tmp_path / "runs.json")]) == 0
        capsys.readouterr()
        assert main(["evaluate", runs[1], "--json"]) == 0
        told = capsys.readouterr().out
        assert main(compare(short_recipe, out)) == 0
        pages.append(((tmp_path / "comparison.json").read_bytes(), (tmp_path / "runs.json").read_bytes(), told))
        pages[-1] += (figures(out),)
    assert pages[0] == pages[1]
    assert pages[0][3]["critic_curves"][0]["points"][0]["compute"] == 0, "the critic's own run is found"  # type: ignore[index]
    assert forks == []
    written = [path for path in there.rglob("*") if path.suffix in (".yaml", ".json", ".jsonl")]
    assert len(written) > 10
    # The text has its own place, which does not move; a log may tell where a run was.
    positions = (str(here), str(comparison))
    assert [path for path in written if any(place in path.read_text(encoding="utf-8") for place in positions)] == []


@pytest.mark.parametrize("num_starts", [2, 3])
def test_an_interrupted_comparison_goes_on_elsewhere_with_the_same_bits(
    num_starts: int,
    short_recipe: Path,
    comparison: Path,
    tmp_path: Path,
    forks: list[str],
    monkeypatch: pytest.MonkeyPatch,
):
    here, there = tmp_path / "here", tmp_path / "far/away/there"
    start = jobs._start

    def stop(run: jobs.PlannedRun, settings: jobs.Settings) -> object:
        if len(forks) == num_starts:
            raise Stopped
        return start(run, settings)

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_start", stop)
        with pytest.raises(Stopped):
            main(compare(short_recipe, here))
    # A run that has begun and not ended: its last checkpoint is not the end, and nothing is exported.
    last = here / "seed-1" / forks[-1]
    shutil.rmtree(last / "model")
    shutil.rmtree(sorted((last / "checkpoints").iterdir())[-1])
    assert len(list((last / "checkpoints").iterdir())) == 1
    there.parent.mkdir(parents=True)
    here.rename(there)
    assert main(compare(short_recipe, there)) == 0
    for name in ("actor", "critic", *METHODS):
        assert outcome(there / "seed-1" / name) == outcome(comparison / "seed-1" / name)
    assert figures(there) == figures(comparison)


def test_text_that_has_moved_is_known_by_its_content(
    short_recipe: Path, tmp_path: Path, forks: list[str], refusal: Refusal, capsys: pytest.CaptureFixture[str]
):
    text = write_text(tmp_path / "text.txt")
    out = tmp_path / "out"
    splits = ("train", "valid", "test")
    assert main(compare(short_recipe, out, *(f"data.{split}={text}" for split in splits))) == 0
    expected = figures(out)
    forks.clear()
    moved = text.rename(tmp_path / "moved.txt")
    line = refusal("evaluate", out / "seed-1/likelihood")
    assert f"data.test: no such file: {text}; check the path, or give data.test=FILE if it has moved" in line
    assert main(["evaluate", str(out / "seed-1/likelihood"), f"data.test={moved}"]) == 0
    assert main(compare(short_recipe, out, *(f"data.{split}={moved}" for split in splits))) == 0
    assert forks == []
    given = {"configuration"}  # tells the command's settings
    found = figures(out)
    assert {key: found[key] for key in found if key not in given} == {
        key: expected[key] for key in expected if key not in given
    }
    other = write_text(tmp_path / "other.txt", seed=9)
    command = compare(short_recipe, out, f"data.train={other}", f"data.valid={moved}", f"data.test={moved}")
    assert f"data.train: ['{text}'] -> ['{other}']" in refusal(*command)
    assert forks == []


def test_another_test_text_is_refused_while_the_run_s_own_is_there(recipe: Path, finished_run: Path, tmp_path: Path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    own = Path(read_settings(run).data.test[0])  # type: ignore[union-attr,arg-type]
    command = ["train", str(recipe), "--out", str(run), *method_overrides("actor-critic")]
    assert main([*command, f"data.test={shutil.copy(own, tmp_path / 'copy.txt')}"]) == 0
    assert main([*command, f"data.test={write_text(tmp_path / 'other.txt', seed=9)}"]) == 2


def test_networks_that_have_moved_are_known_by_their_digest(recipe: Path, tmp_path: Path, refusal: Refusal):
    one, other = (tmp_path / "networks" / name for name in ("one", "other"))
    train_here(recipe, one, "method.name=likelihood", "phases.train.updates=0")
    train_here(recipe, other, "method.name=likelihood", "phases.train.updates=0", "seed=2")
    run = tmp_path / "deep/below/run"
    command = ["train", str(recipe), "--out", str(run), "method.name=likelihood"]
    assert main([*command, f"start.actor={one}"]) == 0
    assert read_settings(run).start.actor == str(one)
    line = refusal(*command, f"start.actor={other}")
    assert f"holds a run with other settings (start.actor: {one} -> {other})" in line
    assert "start.actor: None" not in line
    elsewhere = one.rename(tmp_path / "elsewhere")
    assert main([*command, f"start.actor={elsewhere}"]) == 0
    # Half done, it needs its start no more.
    expected = outcome(run)
    shutil.rmtree(run / "model")
    shutil.rmtree(sorted((run / "checkpoints").iterdir())[-1])
    assert main([*command, f"start.actor={elsewhere}"]) == 0
    assert outcome(run) == expected
    assert read_settings(run).start.actor == str(elsewhere)


def test_a_run_s_configuration_is_a_recipe_wherever_it_is_read(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    train_here(recipe, Path("runs/actor"), "method.name=likelihood", "phases.train.updates=0")
    train_here(recipe, Path("runs/run"), "method.name=likelihood", "start.actor=runs/actor")
    assert "actor: ../actor\n" in Path("runs/run/config.yaml").read_text(encoding="utf-8")
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    train_here(Path("../runs/run/config.yaml"), Path("again"))
    assert outcome(Path("again")) == outcome(Path("../runs/run"))
