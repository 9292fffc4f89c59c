"""The comparison survives JSON, refuses what makes no sense, and knows who is best."""

import ast
import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from seqcritic.report.comparison import Comparison, Curve, Point
from seqcritic.report.diagnosis import Diagnosis

PUBLISHED = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_json_round_trip(make_comparison: Callable[[int], Comparison], num_seeds: int) -> None:
    comparison = make_comparison(num_seeds)
    assert Comparison.from_dict(json.loads(json.dumps(comparison.to_dict()))) == comparison


def test_json_round_trip_with_beam(make_beam_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_beam_comparison(3)
    read = Comparison.from_dict(json.loads(json.dumps(comparison.to_dict())))
    assert read == comparison
    assert read.with_beam is not None
    assert [row.score for row in read.with_beam.rows] == [row.beam.score for row in comparison.rows if row.beam]


def test_comparisons_written_before_beam_search_was_known_are_read(comparison: Comparison) -> None:
    content = json.loads(json.dumps(comparison.to_dict()))
    del content["beam_signature"], content["critic_curves"], content["train_curves"], content["resampled"]
    for row in content["rows"]:
        del row["beam"], row["critic_explains"]
    assert Comparison.from_dict(content) == comparison
    assert comparison.with_beam is None
    published = PUBLISHED / "demo" / "comparison.json"
    assert Comparison.from_dict(json.loads(published.read_text(encoding="utf-8"))).with_beam is None


def test_json_round_trip_with_critics(critic_comparison: Comparison) -> None:
    assert Comparison.from_dict(json.loads(json.dumps(critic_comparison.to_dict()))) == critic_comparison


def test_json_round_trip_with_training_scores(fitted_comparison: Comparison) -> None:
    content = json.loads(json.dumps(fitted_comparison.to_dict()))
    assert len(content["train_curves"]) == 2
    assert Comparison.from_dict(content) == fitted_comparison
    content["train_curves"][0]["points"][3] = None
    with pytest.raises(ValueError, match=r"comparison.train_curves\[0\].points\[3\]: expected an object"):
        Comparison.from_dict(content)


def test_numbers_json_cannot_hold_become_null(comparison: Comparison) -> None:
    broken = replace(comparison, rows=(replace(comparison.rows[0], score=math.nan, high=math.inf),))
    written = json.dumps(broken.to_dict(), allow_nan=False)
    row = Comparison.from_dict(json.loads(written)).rows[0]
    assert math.isnan(row.score)
    assert math.isnan(row.high)
    assert row.p_value is None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("title",), 3, "comparison.title: expected a string, found int"),
        (("rows",), {}, "comparison.rows: expected a list, found dict"),
        (("rows", 1, "score"), "high", r"comparison.rows\[1\].score: expected a number, found str"),
        (("rows", 0, "updates"), 1.5, r"comparison.rows\[0\].updates: expected a whole number, found float"),
        (
            ("curves", 2, "points", 4),
            None,
            r"comparison.curves\[2\].points\[4\]: expected an object, found null",
        ),
        (
            ("examples", 0, "predictions", "likelihood"),
            1,
            r"examples\[0\].predictions.likelihood: expected a string",
        ),
        (("lower_is_better",), 1, "comparison.lower_is_better: expected true or false"),
        (("notes",), ["a", 2], r"comparison.notes\[1\]: expected a string"),
    ],
)
def test_faults_name_their_path(
    comparison: Comparison, path: tuple[str | int, ...], value: object, message: str
) -> None:
    content = json.loads(json.dumps(comparison.to_dict()))
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=message):
        Comparison.from_dict(content)


def test_missing_field_is_named(comparison: Comparison) -> None:
    content = comparison.to_dict()
    del content["signature"]
    with pytest.raises(ValueError, match=r"comparison\.signature: missing"):
        Comparison.from_dict(content)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ([1.0], r"^diagnosis.rows\[1\].estimators\[2\].variance\[1\]: missing$"),
        ([1.0, "a"], r"^diagnosis.rows\[1\].estimators\[2\].variance\[1\]: expected a number, found str$"),
        ([1.0, 2.0, 3.0], r"^diagnosis.rows\[1\].estimators\[2\].variance: .*at most 2"),
    ],
)
def test_a_figure_is_a_value_and_its_error(pair: list[object], message: str) -> None:
    content = json.loads((PUBLISHED / "gradients" / "gradients-checkpoints.json").read_text(encoding="utf-8"))
    assert Diagnosis.from_dict(content).rows[1].estimators[2].variance.error > 0
    content["rows"][1]["estimators"][2]["variance"] = pair
    with pytest.raises(ValueError, match=message):
        Diagnosis.from_dict(content)


def test_senseless_comparisons_are_refused(comparison: Comparison) -> None:
    with pytest.raises(ValueError, match="at least one method"):
        replace(comparison, rows=())
    with pytest.raises(ValueError, match="labels must differ"):
        replace(comparison, rows=comparison.rows[:1] * 2)
    with pytest.raises(ValueError, match="'unknown' is no method; choose one of likelihood"):
        replace(comparison, baseline="unknown")


def test_choice_and_gain_follow_the_direction(comparison: Comparison) -> None:
    better = comparison.rows[2]
    assert comparison.chosen_rows == (better,)
    assert comparison.gain(better) == pytest.approx(100 * (43.18 - 38.52) / 43.18)
    upwards = replace(comparison, lower_is_better=False)
    assert upwards.gain(better) == pytest.approx(-100 * (43.18 - 38.52) / 43.18)
    assert comparison.gain(comparison.rows[0]) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_validation_chooses_by_the_mean_over_seeds_of_the_best_points(comparison: Comparison, sign: int) -> None:
    def curves(label: str, *runs: list[float]) -> tuple[Curve, ...]:
        points = [[Point(0.0, index, sign * score) for index, score in enumerate(scores)] for scores in runs]
        return tuple(Curve(label, seed, tuple(one)) for seed, one in enumerate(points))

    first, second, third = comparison.rows[:3]
    evaluated = replace(
        comparison,
        lower_is_better=sign == 1,
        rows=(first, second, third),
        curves=curves(first.label, [9, 5, 8], [9, 7]) + curves(second.label, [4, math.nan], [9, 7.5]),
    )
    assert [evaluated.valid_score(row) for row in evaluated.rows] == [sign * 6.0, sign * 5.75, None]
    assert evaluated.chosen_rows == (second,)
    assert replace(evaluated, rows=(first, replace(second, score=math.nan))).chosen_rows == (first,)
    assert replace(evaluated, curves=()).chosen_rows == ()


def test_gain_over_a_baseline_of_zero_is_undefined(comparison: Comparison) -> None:
    rows = (replace(comparison.rows[0], score=0.0), *comparison.rows[1:])
    assert replace(comparison, rows=rows).gain(rows[1]) is None


def test_report_needs_nothing_of_the_rest() -> None:
    allowed = {*sys.stdlib_module_names, "rich", "rapidfuzz", "pydantic", "jinja2", "markupsafe"}
    sources = [entry for entry in files("seqcritic.report").iterdir() if entry.name.endswith(".py")]
    assert len(sources) > 10
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                assert name.startswith("seqcritic.report.") or name.split(".")[0] in allowed, source.name
