"""The result pages are what their committed result files say."""

from __future__ import annotations

import json

import pytest

import headline
import results
from paper import TABLE_1, bleu_gain


def test_every_page_is_up_to_date():
    for path, content in results.pages():
        assert path.read_text(encoding="utf-8") == content, f"{path}: run benchmarks/evidence/results.py"


def test_every_study_has_a_page_that_shows_its_table():
    shown = "".join(path.read_text(encoding="utf-8") for path in results.RESULTS.glob("*.md"))
    for path in results.RESULTS.glob("*/comparison.json"):
        assert (results.RESULTS / f"{path.parent.name}.md").is_file() or "<!-- spelling -->" in shown
    assert shown.count("<!-- headlines -->") == 1


def test_every_picture_is_shown_on_a_page():
    shown = "".join(path.read_text(encoding="utf-8") for path in results.RESULTS.parent.rglob("*.md"))
    assert [name for name, _ in results.pictures() if f"images/{name}.svg" not in shown] == []


def test_a_changed_figure_is_noticed():
    path = results.RESULTS / "demo.md"
    page = path.read_text(encoding="utf-8")
    assert results.rendered(page.replace("| likelihood | 4", "| likelihood | 5")) == page


def test_headlines_tell_every_method_of_every_study_by_each_search():
    told = json.loads(headline.FILE.read_text(encoding="utf-8"))
    for path in results.RESULTS.glob("*/comparison.json"):
        comparison = results.tables.read_comparison(path)
        own = [each for each in told if each["study"] == path.parent.name]
        for search in ("greedy", "beam") if comparison.with_beam else ("greedy",):
            methods = [each["method"] for each in own if each["search"] == search]
            assert sorted([*methods, comparison.baseline]) == sorted(row.label for row in comparison.rows)
    demo = next(each for each in told if each["study"] == "demo")
    # 41.73 − 39.24, and an error rate that falls is a gain.
    assert demo["method"] == "actor-critic+likelihood"
    assert demo["seeds"] == 5
    assert demo["gain"] == pytest.approx(2.49, abs=0.01)
    assert demo["baseline"] - demo["score"] == pytest.approx(demo["gain"], abs=2e-4)


def test_reductions_of_the_paper_are_those_it_tells():
    told = {"L10-eta0.3": (6.5, 3.2), "L30-eta0.3": (7.1, 5.9), "L10-eta0.5": (9.2, 5.9), "L30-eta0.5": (11.0, 9.5)}
    for setting, (mixed, alone) in told.items():
        found = TABLE_1[setting]
        assert found["actor-critic+likelihood"] == pytest.approx(mixed, abs=0.06)
        assert found["actor-critic"] == pytest.approx(alone, abs=0.06)


def test_gains_of_the_paper_in_translation_are_those_it_tells():
    assert bleu_gain("window", "actor-critic") == pytest.approx((2.33, 0.99))
    assert bleu_gain("bidirectional", "actor-critic+likelihood") == pytest.approx((1.67, 0.97))
    assert bleu_gain("window", "actor-critic+likelihood") is None
