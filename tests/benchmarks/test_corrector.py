"""The evaluation of correctors: texts as they are marked, word error rates, and the margin chosen on another text."""

from __future__ import annotations

from pathlib import Path

import pytest

from corrector import NOTHING, evaluate, read_pairs, word_error_rate
from speller_worker import in_case_of

HOLBROOK = "NIGEL page 48\n\nMy <ERR targ=sister> siter </ERR> goes <ERR targ=sometimes> some times </ERR> .\n"


def test_errors_are_read_as_marked_or_from_columns(tmp_path: Path):
    (tmp_path / "marked.dat").write_text(HOLBROOK)
    assert read_pairs(tmp_path / "marked.dat")[1] == ("My siter goes some times .", "My sister goes sometimes .")
    (tmp_path / "columns.tsv").write_text("teh cat\tThe cat\n\t\n")
    assert read_pairs(tmp_path / "columns.tsv") == [("teh cat", "The cat")]


def test_words_are_compared_without_case_and_marks():
    assert word_error_rate(["the Cat, sat"], ["The cat sat."]) == 0
    assert word_error_rate(["some times it is"], ["sometimes it is"]) == pytest.approx(100 * 2 / 3)


def test_a_row_tells_what_was_mended_and_what_was_spoilt():
    pairs = [("teh cat", "the cat"), ("a teh", "a teh")]
    nothing = evaluate(NOTHING, list, pairs)
    assert (nothing["word_error_rate"], nothing["clean_words_changed"]) == (25.0, 0.0)
    mends = evaluate("mends", lambda lines: [line.replace("teh", "the") for line in lines], pairs)
    assert (mends["word_error_rate"], mends["clean_words_changed"]) == (25.0, 25.0)
    assert nothing["words_per_second"] is None


@pytest.mark.parametrize(
    ("word", "corrected", "expected"),
    [("Teh", "the", "The"), ("TEH", "the", "THE"), ("I", "i", "I"), ("McDonald", "mcdonald", "McDonald")],
)
def test_corrections_of_others_keep_the_case(word: str, corrected: str, expected: str):
    assert in_case_of(word, corrected) == expected
