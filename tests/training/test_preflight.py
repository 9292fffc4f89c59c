"""Checks before the first update: warnings with advice, an estimate, and not one bit of the run changed by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import seqcritic
from seqcritic.cli import main
from seqcritic.training import train
from seqcritic.training.preflight import Estimate, estimate, num_planned_updates, unknown_share, warnings_of
from support import SHORT, outcome, write_recipe

PAIRS = [(f"w{number} w{number + 1}", f"v{number % 40} v{(number + 1) % 40}") for number in range(200)]


def test_unknown_tokens_of_references_are_counted_and_told_with_advice():
    known = [("a", "x x"), ("b", "x y")]
    task = seqcritic.pairs(known, [("a", "x z"), ("b", "x y z")], target_tokens={"kind": "whitespace"})
    assert unknown_share(task) == pytest.approx(2 / 5)
    (told,) = warnings_of(task)
    assert told.startswith("warning: 40.0 % of the tokens of the validation references are unknown")
    assert "data.target_tokens.kind=subwords" in told
    assert warnings_of(seqcritic.pairs(known, [("a", "x y")], target_tokens={"kind": "whitespace"})) == []
    assert unknown_share(seqcritic.pairs(known, [("a", "z")], target_tokens={"kind": "subwords", "size": 256})) == 0


def test_pairs_that_are_left_out_are_told():
    given = [*PAIRS[:8], ("a b c", "x"), ("a b c d", "y")]
    (told,) = warnings_of(seqcritic.pairs(given, PAIRS[:3], maximum_length=2))
    assert told.startswith("warning: 20 % of the training pairs are left out (2 longer than 2 tokens)")


def test_pairs_that_can_only_be_copied_are_told():
    (told,) = warnings_of(seqcritic.pairs([(word, word) for word in "abcd"], [("a", "a"), ("b", "b")]))
    assert told.startswith("warning: source and target are the same in all validation pairs")


def test_a_run_is_the_same_with_and_without_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recipe = write_recipe(tmp_path)
    assert main(["train", str(recipe), "--out", str(tmp_path / "plain"), *SHORT]) == 0
    tried: list[str] = []
    monkeypatch.setattr(train, "ENOUGH_UPDATES", 12)
    monkeypatch.setattr(Estimate, "tell", lambda self: tried.extend(self.seconds) or "")
    assert main(["train", str(recipe), "--out", str(tmp_path / "tried"), *SHORT]) == 0
    assert tried == ["actor", "critic", "train"]
    assert outcome(tmp_path / "tried") == outcome(tmp_path / "plain")


def test_validate_tells_what_a_run_will_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    recipe = write_recipe(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["validate", str(recipe), "--trial"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("name: tiny")
    assert "by 10 trial updates of each phase it will take about" in told.err
    assert "MB of memory" in told.err
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["validate", str(recipe), "--trial", "data.valid=nowhere.txt"]) == 2
    assert "data.valid: no such file: nowhere.txt" in capsys.readouterr().err


def test_time_grows_with_the_updates_that_are_planned(tmp_path: Path):
    settings = seqcritic.load_recipe(write_recipe(tmp_path), {"phases.actor.updates": 1, "phases.train.updates": 10**6})
    task = seqcritic.pairs(PAIRS, PAIRS[:9])
    found = estimate(settings, task)
    assert found.seconds["train"] > 1000 * found.seconds["actor"] > 0
    assert 50 < found.megabytes < 100_000
    assert num_planned_updates(settings, task) == 1 + 20 + 10**6
    # How long that is depends on the machine; how it is told does not.
    assert "h (actor" in replace(found, seconds={"actor": 1.0, "train": 7200.0}).tell()
