"""Evaluations kept beside a run: read again when nothing has changed, made again when something has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from seqcritic import progress
from seqcritic.decoding.search import Search
from seqcritic.evaluation import stored
from seqcritic.evaluation.run import evaluate
from seqcritic.evaluation.stored import StoredEvaluations


@pytest.fixture
def run(lively_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lively_run, tmp_path / "run", ignore=shutil.ignore_patterns("evaluations")))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    """The searches that are really made."""
    made: list[Search] = []
    predict = stored.predict_batches

    def count(*arguments: object) -> list[str]:
        made.append(arguments[3])  # type: ignore[arg-type]
        return predict(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stored, "predict_batches", count)
    return made


@pytest.mark.parametrize("search", [Search(), Search(4, 0.6)])
def test_what_is_read_again_equals_what_was_evaluated(run: Path, search: Search, searches: list[Search]):
    first, again = (StoredEvaluations(run).on_test(search) for _ in range(2))
    assert searches == [search]
    direct = evaluate(run, search=search)
    assert first.to_dict() == again.to_dict() == direct.to_dict()
    assert again.predictions == direct.predictions
    assert (again.statistics == direct.statistics).all()


def test_another_length_reward_is_another_evaluation(run: Path, searches: list[Search]):
    StoredEvaluations(run).on_test(Search(4, 0.6))
    StoredEvaluations(run).on_test(Search(4, 0.8))
    assert searches == [Search(4, 0.6), Search(4, 0.8)]


def test_other_weights_are_evaluated_again(run: Path, searches: list[Search]):
    StoredEvaluations(run).on_test()
    path = next((run / "evaluations").iterdir())
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert "actor:" in stored["key"]
    path.write_text(json.dumps(stored | {"key": stored["key"].replace("actor:", "actor:0")}), encoding="utf-8")
    StoredEvaluations(run).on_test()
    assert searches == [Search(), Search()]


@pytest.mark.parametrize("damage", ["", "[]", '{"key": 3}', "\x00"])
def test_a_damaged_file_counts_as_none(run: Path, damage: str, searches: list[Search]):
    expected = StoredEvaluations(run).on_test().score
    next((run / "evaluations").iterdir()).write_text(damage, encoding="utf-8")
    assert StoredEvaluations(run).on_test().score == expected
    assert len(searches) == 2


def test_the_length_reward_is_tuned_once(run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stored, "tune_model", lambda model, task, width, label: (0.4, {0.0: 1.0, 0.4: 2.0}))
    assert StoredEvaluations(run).tuned(4) == Search(4, 0.4)
    monkeypatch.setattr(stored, "tune_model", lambda model, task, width, label: (0.8, {0.8: 2.0}))
    assert StoredEvaluations(run).tuned(4) == Search(4, 0.4)
    assert StoredEvaluations(run).tuned(5) == Search(5, 0.8)


def test_a_long_evaluation_tells_how_far_it_is(run: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    result = StoredEvaluations(run, "mine, seed 1").on_test(Search(3))
    total = len(result.sources)
    assert told[-1] == f"mine, seed 1: beam 3 on test: {total}/{total} sentences"
