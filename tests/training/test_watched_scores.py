"""Scores that are watched beside the one that is trained for, and the parts of a sum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqcritic import evaluate, load_recipe, train
from seqcritic.contracts.score import References
from seqcritic.errors import UserError
from seqcritic.scores.chrf import ChrfScore
from seqcritic.scores.ter import TerScore
from seqcritic.training.tracking import read_metrics

SHORT = [
    "method.name=reinforce",
    "phases.actor.updates=2",
    "phases.train.updates=2",
    "training.evaluate_every=2",
    "training.batch=2",
    "data.valid_size=6",
    "data.test_size=6",
]


def corpus(score: ChrfScore | TerScore, predictions: list[str], references: list[References]) -> float:
    return float(score.of_totals(score.statistics(predictions, references).sum(axis=0)))


def test_other_scores_are_measured_at_every_evaluation_and_change_nothing_else(tmp_path: Path):
    plain, watching = (
        train(load_recipe("demo", [*SHORT, *more]), tmp_path / name)
        for name, more in {"plain": [], "watching": ["evaluation.also=[chrf, ter]"]}.items()
    )
    before, after = ([record for record in read_metrics(run) if record["kind"] == "valid"] for run in (plain, watching))
    assert len(before) == len(after) > 1
    for one, other in zip(before, after, strict=True):
        assert {"valid_chrF", "valid_TER"} == set(other) - set(one)
        assert one["valid_score"] == other["valid_score"]
    result = evaluate(watching, split="test")
    references: list[References] = list(result.references)
    assert result.further["chrF"][0] == pytest.approx(corpus(ChrfScore(), result.predictions, references))
    assert result.further["TER"][0] == pytest.approx(corpus(TerScore(), result.predictions, references))
    assert evaluate(plain, split="test").further == {}


def test_a_run_is_trained_for_a_sum_and_reports_its_parts(tmp_path: Path):
    parts = json.dumps([{"name": "edit-distance", "weight": 1}, {"name": "cider", "weight": 0.5}, {"name": "chrf"}])
    settings = load_recipe("demo", [*SHORT, "score.name=weighted-sum", f"score.parts={parts}"])
    run = train(settings, tmp_path / "run")
    result = evaluate(run, split="test")
    rates = {name: score for name, (score, _) in result.further.items()}
    assert set(rates) == {"CER", "CIDEr", "chrF"}
    assert result.score == pytest.approx(-rates["CER"] + 0.5 * 10 * rates["CIDEr"] + rates["chrF"])
    assert "|part:1*CER(" in result.signature
    assert {"valid_CER", "valid_CIDEr", "valid_chrF"} <= set(read_metrics(run)[-1])


@pytest.mark.parametrize(
    ("also", "fault"),
    [
        ("[chfr]", r"^evaluation\.also\.0: unknown score 'chfr' \(did you mean 'chrf'\?\)"),
        ("[ter, ter]", r"^evaluation\.also\.1: 'ter' cannot be watched, or is named twice"),
        ("[weighted-sum]", r"^evaluation\.also\.0: 'weighted-sum' cannot be watched"),
    ],
)
def test_faults_are_told_by_their_place(also: str, fault: str):
    with pytest.raises(UserError, match=fault):
        load_recipe("demo", [f"evaluation.also={also}"])
