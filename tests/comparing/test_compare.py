"""Comparisons of tiny runs: equal compute from shared actors, resumed when stopped, the same table again."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from seqcritic.cli import main
from seqcritic.comparing import compare as compare_module
from seqcritic.comparing import jobs
from seqcritic.comparing.gather import compare_experiments, compare_runs
from seqcritic.comparing.plan import budget
from seqcritic.decoding.search import Search
from seqcritic.evaluation import stored
from seqcritic.evaluation.run import evaluate
from seqcritic.evaluation.tuning import tune_length_reward
from seqcritic.report.pages import render_page
from seqcritic.settings.io import load_recipe
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import read_description
from seqcritic.training.run_folder import read_settings
from support import (
    SHORT,
    Fork,
    Refusal,
    Screen,
    complaints,
    outcome,
    records,
    snapshot,
    start,
    train_here,
    updates_done,
    wait_until,
    write_recipe,
)

METHODS = ("likelihood", "actor-critic+likelihood", "reinforce", "reinforce-critic")
SEEDS = (1, 2)
FILES = ("comparison.json", "report.html", "curves.svg", "table.md")


@pytest.fixture(scope="module")
def short_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe whose runs take less time than a process takes to start."""
    phases = {phase: {"updates": 6, "learning_rate": 0.01} for phase in ("actor", "critic", "train")}
    return write_recipe(tmp_path_factory.mktemp("short"), phases=phases)


def arguments(recipe: Path, out: Path, num_seeds: int = len(SEEDS)) -> list[str]:
    return ["compare", str(recipe), "--methods", ",".join(METHODS), "--seeds", str(num_seeds), "--out", str(out)]


def test_from_scratch_forgets_what_the_recipe_starts_from(
    short_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def stop(settings: Settings, *_: object, **__: object) -> None:
        raise RuntimeError(str(settings.start))

    monkeypatch.setattr(compare_module, "train_rows", stop)
    trained = load_recipe(short_recipe, {"start.actor": "somewhere", "start.critic": "elsewhere"})
    with pytest.raises(RuntimeError, match="actor='somewhere' critic='elsewhere'"):
        compare_module.compare(trained, METHODS, out=tmp_path)
    with pytest.raises(RuntimeError, match="actor=None critic=None"):
        compare_module.compare(trained, METHODS, out=tmp_path, from_scratch=True)


def start_in_forks(patch: pytest.MonkeyPatch) -> None:
    """Let the runs of a comparison be forks of this process, which has torch loaded already."""
    patch.setattr(jobs, "Popen", lambda command, **options: Fork(*command[command.index("train") :]))


@pytest.fixture(scope="module")
def comparison(short_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished comparison, its twelve runs in forks of this process."""
    out = tmp_path_factory.mktemp("comparison") / "out"
    with pytest.MonkeyPatch.context() as patch:
        start_in_forks(patch)
        patch.setattr(jobs, "POLL_SECONDS", 0.01)
        assert main(arguments(short_recipe, out)) == 0
    return out


def refuse_to_start(*rest: object, **options: object) -> None:
    raise AssertionError("a finished run was started")


def progress(folder: Path) -> dict[str, float]:
    found: dict[str, float] = read_description(folder / "model")["progress"]
    return found


def test_all_files_are_written(comparison: Path):
    assert all((comparison / name).stat().st_size > 0 for name in FILES)
    data = json.loads((comparison / "comparison.json").read_text(encoding="utf-8"))
    assert [row["label"] for row in data["rows"]] == list(METHODS)
    assert all(len(row["seed_scores"]) == len(SEEDS) for row in data["rows"])
    assert data["baseline"] == "likelihood"
    assert "|split:test|" in data["signature"]
    assert re.search(r"^score:CER\|split:valid\|sentences:\d+\|.*\|search:greedy\|", data["valid_signature"])
    table = (comparison / "table.md").read_text(encoding="utf-8")
    page = (comparison / "report.html").read_text(encoding="utf-8")
    assert all(label in table and label in page for label in METHODS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("label", METHODS)
def test_every_method_uses_up_the_budget(label: str, seed: int, comparison: Path, short_recipe: Path):
    folder = comparison / f"seed-{seed}" / label
    settings = load_recipe(short_recipe)
    cost = settings.compare.cost(label)
    assert abs(progress(folder)["compute"] - budget(settings)) < cost
    last = records(folder)[-1]
    assert last["compute"] == progress(folder)["compute"]
    paid_before = progress(comparison / f"seed-{seed}/critic")["compute"] if "critic" in label else 0
    assert (paid_before > 0) == ("critic" in label)
    assert last["compute"] == pytest.approx(paid_before + cost * last["update"])


@pytest.mark.parametrize("seed", SEEDS)
def test_all_methods_of_a_seed_start_from_one_actor(seed: int, comparison: Path):
    folders = [comparison / f"seed-{seed}" / label for label in METHODS]
    assert {read_settings(folder).start.actor for folder in folders} == {str(comparison / f"seed-{seed}/actor")}
    best = min(
        record["valid_score"] for record in records(comparison / f"seed-{seed}/actor") if record["kind"] == "valid"
    )
    first = [records(folder)[0] for folder in folders]
    assert [(record["update"], record["valid_score"]) for record in first] == [(0, best)] * len(METHODS)
    assert {read_settings(folder).seed for folder in folders} == {seed}


def test_seeds_differ(comparison: Path):
    assert outcome(comparison / "seed-1/actor") != outcome(comparison / "seed-2/actor")


def test_a_second_call_finishes_at_once_with_the_same_table(
    comparison: Path, short_recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs, "Popen", refuse_to_start)
    before = {seed: snapshot(comparison / f"seed-{seed}") for seed in SEEDS}
    files = {name: (comparison / name).read_text(encoding="utf-8") for name in FILES}
    assert main(arguments(short_recipe, comparison)) == 0
    printed = capsys.readouterr()
    assert all(label in printed.out for label in METHODS)
    assert "starting" not in printed.err
    assert {name: (comparison / name).read_text(encoding="utf-8") for name in FILES} == files
    assert {seed: snapshot(comparison / f"seed-{seed}") for seed in SEEDS} == before


def test_rows_that_cannot_stand_beside_the_others_are_refused_before_anything_runs(
    short_recipe: Path, tmp_path: Path, refusal: Refusal
):
    command = ("compare", short_recipe, "--out", tmp_path / "out", "--row")
    assert refusal(*command, "a: data.noise=0.5").startswith("seqcritic: row 'a': data.noise: shared by all rows")
    line = refusal(*command, "a: score.capped=true")
    assert line == "seqcritic: row 'a': score: reports another score than the recipe; compare rows by one score"
    assert not (tmp_path / "out").exists()


def test_beam_search_is_added_to_a_finished_comparison_without_training(
    comparison: Path,
    short_recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    out = tmp_path / "out"
    shutil.copytree(comparison, out)
    monkeypatch.setattr(jobs, "Popen", refuse_to_start)
    command = [*arguments(short_recipe, out), "compare.beam=3"]
    assert main(command) == 0
    assert "beam 3, ρ" in capsys.readouterr().out
    data = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert "search:beam:3|rho:tuned-on-valid" in data["beam_signature"]
    for row in data["rows"]:
        assert row["beam"]["low"] <= row["beam"]["score"] <= row["beam"]["high"]
        assert (row["beam"]["p_value"] is None) == (row["label"] == "likelihood")
    for row in data["rows"][:2]:
        folders = [out / f"seed-{seed}" / row["label"] for seed in SEEDS]
        rhos = [tune_length_reward(folder, 3)[0] for folder in folders]
        found = [evaluate(folder, search=Search(3, rho)) for folder, rho in zip(folders, rhos, strict=True)]
        assert row["beam"]["rhos"] == rhos
        assert row["beam"]["seed_scores"] == [evaluation.score for evaluation in found]
    # All that takes time is kept: the command again predicts nothing.
    shutil.rmtree(out / "seed-2/likelihood/evaluations")
    searched: list[str] = []
    predict = stored.predict_batches
    monkeypatch.setattr(stored, "predict_batches", lambda *rest: searched.append("test") or predict(*rest))
    tune = stored.tune_model
    monkeypatch.setattr(stored, "tune_model", lambda *rest, **more: searched.append("valid") or tune(*rest, **more))
    files = {name: (out / name).read_bytes() for name in FILES}
    assert main(command) == 0
    assert searched == ["test", "valid", "test"]
    assert main(command) == 0
    assert searched == ["test", "valid", "test"]
    assert {name: (out / name).read_bytes() for name in FILES} == files


def test_the_explained_variance_is_told(comparison: Path):
    data = json.loads((comparison / "comparison.json").read_text(encoding="utf-8"))
    shares = {row["label"]: row["critic_explains"] for row in data["rows"]}
    for label in METHODS:
        if "critic" not in label:
            assert shares[label] is None
            continue
        starts = [records(comparison / f"seed-{seed}" / label)[0] for seed in SEEDS]
        assert shares[label] == pytest.approx(sum(each["held_out_explained_variance"] for each in starts) / len(SEEDS))
    curves = {(curve["label"], curve["seed"]): curve["points"] for curve in data["critic_curves"]}
    assert set(curves) == {(label, seed) for label in METHODS if "critic" in label for seed in SEEDS}
    for (label, seed), points in curves.items():
        both = records(comparison / f"seed-{seed}/critic") + records(comparison / f"seed-{seed}" / label)
        logged = [each for each in both if "held_out_explained_variance" in each]
        assert [each["held_out_explained_variance"] for each in logged] == [point["score"] for point in points]
        assert [each["compute"] for each in logged] == [point["compute"] for point in points]
        assert points[0]["compute"] == 0


def test_training_scores_are_gathered_where_runs_have_them(recipe: Path, finished_run: Path, tmp_path: Path):
    run = train_here(recipe, tmp_path / "run", *SHORT, "training.train_examples=5", "method.name=likelihood")
    found = compare_runs([run, finished_run])
    [curve] = found.train_curves
    assert (curve.label, curve.seed) == ("likelihood", 1)
    logged = [each for each in records(run) if each["phase"] == "train" and "train_score" in each]
    assert [(each["compute"], each["update"], each["train_score"]) for each in logged] == [
        (point.compute, point.updates, point.score) for point in curve.points
    ]
    assert len(logged) == 2
    assert [point.score for point in found.curves[0].points] == [each["valid_score"] for each in logged]
    assert 'id="training"' in render_page(found)


def test_seeds_whose_critics_took_unequal_compute_are_one_row(recipe: Path, finished_run: Path, tmp_path: Path):
    given = ["method.name=actor-critic", f"start.actor={finished_run}", f"start.critic={finished_run}"]
    for seed in SEEDS:
        train_here(recipe, tmp_path / f"seed-{seed}/actor-critic", *given, f"phases.train.updates={seed}")
    folders = [tmp_path / f"seed-{seed}/actor-critic" for seed in SEEDS]
    (row,) = compare_experiments({"actor-critic": folders}).rows
    assert len(row.seed_scores) == len(SEEDS)
    apart = [row.label for row in compare_runs(folders).rows]
    assert apart == [f"actor-critic ({folder})" for folder in folders]


def test_a_report_of_a_comparison_is_its_page(comparison: Path, tmp_path: Path):
    assert main(["report", str(comparison), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_bytes() == (comparison / "report.html").read_bytes()


def test_a_comparison_is_evaluated_on_other_text_without_touching_its_own(comparison: Path, tmp_path: Path):
    stored = {path: path.read_bytes() for path in comparison.glob("seed-*/*/evaluations/*.json")}
    out = tmp_path / "other.json"
    assert main(["report", str(comparison), "data.noise=0.5", "--out", str(out)]) == 0
    own, other = (json.loads(path.read_text(encoding="utf-8")) for path in (comparison / "comparison.json", out))
    assert [row["label"] for row in other["rows"]] == [row["label"] for row in own["rows"]]
    assert "noise:0.5" in other["signature"]
    assert "noise:0.5" not in own["signature"]
    folder = comparison / f"seed-1/{own['rows'][0]['label']}"
    assert other["rows"][0]["seed_scores"][0] == evaluate(folder, overrides=["data.noise=0.5"]).score
    assert {path: path.read_bytes() for path in stored} == stored


def test_other_text_needs_the_runs_of_a_comparison(comparison: Path, tmp_path: Path, refusal: Refusal):
    shutil.copy(comparison / "comparison.json", tmp_path)
    assert f"{tmp_path} holds no runs" in refusal("report", tmp_path, "data.noise=0.5", "--out", tmp_path / "x.json")
    assert "name at least one run" in refusal("report", "data.noise=0.5")


def test_other_settings_in_the_folder_are_refused_by_name(comparison: Path, short_recipe: Path, refusal: Refusal):
    before = snapshot(comparison)
    line = refusal(*arguments(short_recipe, comparison), "data.noise=0.5")
    assert "seed-1/actor holds a run with other settings (data.noise: 0.3 -> 0.5)" in line
    assert snapshot(comparison) == before


def test_a_fault_of_a_run_is_the_comparison_s(comparison: Path, short_recipe: Path, tmp_path: Path, refusal: Refusal):
    out = tmp_path / "out"
    shutil.copytree(comparison / "seed-1/actor", out / "seed-1/actor")
    command = ("compare", short_recipe, "--methods", "likelihood", "--out", out)
    assert main([str(argument) for argument in command]) == 0
    shutil.rmtree(out / "seed-1/likelihood/model")
    networks = sorted((out / "seed-1/likelihood/checkpoints").iterdir())[-1] / "networks.safetensors"
    networks.write_bytes(networks.read_bytes()[:-1])
    line = refusal(*command)
    assert line.startswith(f"seqcritic: likelihood (seed 1) ended with exit code 2: seqcritic: {networks} is damaged")


def running_below(folder: Path) -> list[str]:
    """Return the command lines of the processes that name a folder."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return [command for command in commands if f"{folder}/" in command]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_comparison_leaves_no_process_and_is_resumed(
    number: signal.Signals, short_recipe: Path, finished_run: Path, tmp_path: Path
):
    out = tmp_path / "out"
    command = [
        "compare",
        str(short_recipe),
        "--methods",
        "likelihood",
        "--out",
        str(out),
        f"start.actor={finished_run}",
    ]
    # So many that no machine is done with them before the signal arrives.
    command += ["compare.budget=1500"]
    process = start(*command)
    wait_until(lambda: updates_done(out / "seed-1/likelihood") >= 4, process)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    if number == signal.SIGTERM:
        assert process.returncode == 128 + signal.SIGTERM
        assert complaints(stderr) == ["seqcritic: stopped; the same command resumes"]
        assert running_below(out) == []
    deadline = time.monotonic() + 30
    while running_below(out):
        assert time.monotonic() < deadline, "a run outlives its comparison"
        time.sleep(0.05)
    assert not (out / "seed-1/likelihood/model").exists()
    assert main(command) == 0
    assert "resuming from" in (out / "seed-1/likelihood.log").read_text(encoding="utf-8")
    assert all((out / name).is_file() for name in FILES)


def test_ctrl_c_in_a_terminal_is_no_fault_of_a_run(short_recipe: Path, finished_run: Path, tmp_path: Path):
    """A terminal sends the interrupt to the runs as well, and they leave with exit code 130."""
    out = tmp_path / "out"
    overrides = [f"start.actor={finished_run}", "compare.budget=100000", "--methods", "likelihood"]
    process = start("compare", short_recipe, "--out", out, *overrides, start_new_session=True)
    wait_until(lambda: updates_done(out / "seed-1/likelihood") >= 2, process)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert complaints(stderr) == ["seqcritic: stopped; the same command resumes"]
    assert "resumes from" in (out / "seed-1/likelihood.log").read_text(encoding="utf-8")


def test_a_terminal_shows_bars(short_recipe: Path, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.01)
    start_in_forks(monkeypatch)
    given = f"start.actor={finished_run}"
    assert main(["compare", str(short_recipe), "--methods", "reinforce-critic", "--out", str(tmp_path), given]) == 0
    shown = screen.getvalue()
    assert "pre-training the critic" in shown
    assert "critic " in shown
    assert "/s" in shown
    assert "reinforce-critic" in shown
    assert re.search(r"done  valid CER [0-9.]+ \(best [0-9.]+\)  [0-9.]+/s", shown)


def test_a_report_keeps_different_experiments_of_one_method_apart(recipe: Path, finished_run: Path, tmp_path: Path):
    given = ["method.name=actor-critic", f"start.actor={finished_run}", f"start.critic={finished_run}"]
    one = train_here(recipe, tmp_path / "one", *given)
    again = train_here(recipe, tmp_path / "again", *given, "seed=2")
    other = train_here(recipe, tmp_path / "other", *given, "method.gamma_phi=1")
    rows = compare_runs([one, again, other]).rows
    assert [row.label for row in rows] == ["actor-critic (one)", "actor-critic (other)"]
    assert [len(row.seed_scores) for row in rows] == [2, 1]
    assert [row.updates for row in rows] == [20, 20]
