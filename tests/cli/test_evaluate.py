"""`evaluate` and `report`: a score with its interval and signature, and a page about runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from seqcritic.cli import main
from seqcritic.comparing.gather import compare_runs
from seqcritic.evaluation.run import evaluate
from support import SHORT, method_overrides, train_here, write_text

SIGNATURE = re.compile(
    r"score:CER\|split:test\|sentences:30\|text:[0-9a-f]{8}\|L:6\|noise:0\.3\|evaluation_seed:0\|search:greedy\|rapidfuzz:"
)


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_json_has_what_a_script_needs(lively_run: Path, capsys: pytest.CaptureFixture[str]):
    result = json.loads(told(capsys, "evaluate", lively_run, "--json"))
    low, high = result["interval"]
    assert 0 < low < result["score"] < high
    assert SIGNATURE.match(result["signature"])
    assert result["sentences"] == 30
    assert (result["method"], result["split"], result["score_name"]) == ("likelihood", "test", "CER")
    assert result["score"] == evaluate(lively_run).score


def test_runs_trained_for_different_surrogates_stand_in_one_table_that_names_them(recipe: Path, tmp_path: Path):
    overrides = [*method_overrides("likelihood"), *SHORT]
    runs = [train_here(recipe, tmp_path / given, *overrides, f"score.normalise={given}") for given in ("false", "true")]
    comparison = compare_runs(runs)
    plain, ratio = comparison.signature.split(" and ")
    assert "trained:" not in plain
    assert "|trained:edit-distance/length:characters|" in ratio
    (note,) = comparison.notes
    assert note == "Rewards are paid by a surrogate, edit-distance/length in characters; what is reported is CER."


def test_text_has_the_score_and_its_signature(lively_run: Path, capsys: pytest.CaptureFixture[str]):
    score, signature = told(capsys, "evaluate", lively_run).splitlines()
    assert score.startswith(f"CER {evaluate(lively_run).score:.2f}  (95 % interval ")
    assert SIGNATURE.match(signature)


def test_other_splits_and_other_text(lively_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    valid = json.loads(told(capsys, "evaluate", lively_run, "--split", "valid", "--json"))
    assert "|split:valid|sentences:20|" in valid["signature"]
    other = write_text(tmp_path / "other.txt", num_lines=12, seed=5)
    overrides = (f"data.test={other}", "data.test_size=null", "data.noise=0")
    changed = json.loads(told(capsys, "evaluate", lively_run, "--json", *overrides))
    assert re.search(r"\|sentences:12\|text:[0-9a-f]{8}\|L:6\|noise:0\.0\|", changed["signature"])
    assert changed["signature"].split("text:")[1][:8] != valid["signature"].split("text:")[1][:8]


def test_a_model_folder_and_a_checkpoint_score_as_their_run(finished_run: Path):
    latest = sorted((finished_run / "checkpoints").iterdir())[-1]
    scores = {evaluate(place).score for place in (finished_run, finished_run / "model", latest)}
    assert len(scores) == 1


def test_a_report_of_runs_is_a_page(lively_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    page = tmp_path / "new folder/page.html"
    assert told(capsys, "report", lively_run, "--out", page) == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    assert "likelihood" in text
    assert f"{evaluate(lively_run).score:.2f}" in text
