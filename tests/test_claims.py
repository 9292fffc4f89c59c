"""The tables at the front show what the files of results say, and every method of their study."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def rows_after(text: str, heading: str) -> dict[str, list[str]]:
    """Return the cells of the first table whose header begins so, by the method of the row."""
    lines = text[text.index(heading) :].splitlines()[2:]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    length = next(number for number, line in enumerate(lines) if not line.startswith("|"))
    return {cells[0]: cells[1:] for cells in table[:length]}


def rows_of(name: str) -> dict[str, dict]:
    rows = json.loads((RESULTS / name).read_text(encoding="utf-8"))["rows"]
    return {row["label"]: row for row in rows}


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_translation_table_has_all_methods_and_both_studies(readme: str):
    shown = rows_after(readme, "| method | greedy | beam 10 |")
    first, again = rows_of("tatoeba-de-en/comparison.json"), rows_of("tatoeba-de-en/again.json")
    assert shown.keys() == first.keys()
    for method, cells in shown.items():
        studies = [first[method], again.get(method)]
        expected = [["", ""] if row is None else [row["score"], row["beam"]["score"]] for row in studies]
        assert cells == [figure and f"{figure:.1f}" for pair in expected for figure in pair], method


def test_the_demo_table_has_all_methods_and_seeds(readme: str):
    shown, found = rows_after(readme, "| method | CER"), rows_of("demo/comparison.json")
    assert shown.keys() == found.keys()
    for method, (score, interval, seeds) in shown.items():
        row = found[method]
        assert score.strip("*") == f"{row['score']:.2f}"
        assert interval == f"{row['low']:.2f}–{row['high']:.2f}"
        assert seeds.split() == [f"{figure:.2f}" for figure in row["seed_scores"]]
    (clock,) = re.findall(r"by the clock,\s+(\d+)\s+and\s+(\d+)\s+seconds", readme)
    assert [int(seconds) for seconds in clock] == [round(row["seconds"]) for row in found.values()]


def shares_of_seconds(name: str) -> list[float]:
    """Return the seconds of the methods with a critic over those of likelihood."""
    rows = rows_of(name)
    with_critic = [row["seconds"] for row in rows.values() if row["critic_explains"] is not None]
    return [round(seconds / rows["likelihood"]["seconds"], 2) for seconds in with_critic]


@pytest.mark.parametrize(
    ("study", "page"),
    [
        ("spelling-L10-eta0.3", "spelling"),
        ("spelling-L10-eta0.5", "spelling"),
        ("spelling-L30-eta0.3", "spelling"),
        ("spelling-L30-eta0.5", "spelling"),
        ("tatoeba-de-en", "tatoeba-de-en"),
        ("iwslt14-conv", "translation"),
    ],
)
def test_the_clock_is_told_beside_equal_compute(study: str, page: str):
    shares = shares_of_seconds(f"{study}/comparison.json")
    text = " ".join((RESULTS / f"{page}.md").read_text(encoding="utf-8").split())
    assert f"{min(shares):.2f} to {max(shares):.2f}" in text


def test_no_page_says_that_a_figure_has_no_file_and_stands_on_it_all_the_same():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert not re.search(r"there is no file|by (its|the) log\b", text), path


def test_the_packaged_model_does_not_pass_for_a_corrector(readme: str):
    card = (ROOT / "src/seqcritic/pretrained/spelling-paper/MODEL_CARD.md").read_text(encoding="utf-8")
    for text in (readme, card):
        for figure in ("4.6", "17.3", "6.8", "18.7", "3.5", "2.8"):
            assert figure in text
    tour = readme[readme.index("## A tour") : readme.index("## Your own text")]
    assert "spelling-paper" not in tour
