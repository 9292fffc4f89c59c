"""Predictions brought back to the text they correct: nothing is lost, doubled or lower-cased."""

from __future__ import annotations

import random
import string

import pytest

from seqcritic.data.case_restoration import align, read_originals, restore
from seqcritic.data.spelling import SpellingTask
from seqcritic.data.vocabulary import OTHER_CHARACTER, SPELLING_ALPHABET, normalise_spelling, spelling_table
from seqcritic.settings.data import SpellingSettings

TABLE = spelling_table()
STRANGE = "ÜüßİıK猫—½\u0301\u200b\t\x85\x1f\u3000ΑΣς#"


def random_line(randomness: random.Random, length: int) -> str:
    return "".join(randomness.choices(SPELLING_ALPHABET + string.ascii_uppercase + STRANGE + "      ", k=length))


@pytest.mark.parametrize(
    ("source", "prediction", "expected"),
    [
        ("abc", "abc", ["a", "b", "c"]),
        ("abc", "bca", ["b", "c", "a"]),
        ("abcd", "acd", ["a", "", "c", "d"]),
        ("abcd", "abxcd", ["a", "bx", "c", "d"]),
        ("abcd", "xabcd", ["xa", "b", "c", "d"]),
        ("abcd", "abcdxy", ["a", "b", "c", "dxy"]),
        ("abcd", "", ["", "", "", ""]),
        ("a", "xay", ["xay"]),
    ],
)
def test_a_prediction_is_aligned_with_its_source(source: str, prediction: str, expected: list[str]):
    found = align(source, prediction)
    assert "".join(found) == prediction
    assert found == expected


def test_an_alignment_has_a_place_for_every_character_and_loses_none():
    randomness = random.Random(1)
    for _ in range(300):
        source = "".join(randomness.choices("abc ", k=randomness.randint(1, 12)))
        prediction = "".join(randomness.choices("abc ", k=randomness.randint(0, 14)))
        found = align(source, prediction)
        assert len(found) == len(source)
        assert "".join(found) == prediction


def test_what_stands_for_a_normal_character_is_all_of_the_line():
    randomness = random.Random(2)
    for _ in range(300):
        line = random_line(randomness, randomness.randint(0, 30))
        before, originals, after = read_originals(line, TABLE)
        normal = normalise_spelling(line, TABLE)
        assert before + "".join(original.text for original in originals) + after == line
        assert len(originals) == len(normal)
        for original, character in zip(originals, normal, strict=True):
            assert original.normal == character or (original.fixed and character in (OTHER_CHARACTER, "i"))


def test_a_prediction_that_changes_nothing_gives_the_line_itself():
    randomness = random.Random(3)
    for _ in range(300):
        line = random_line(randomness, randomness.randint(0, 30))
        assert restore(line, list(normalise_spelling(line, TABLE)), TABLE) == line


@pytest.mark.parametrize(
    ("line", "prediction", "expected"),
    [
        ("Thr Quikc brown FXO", "the quick brown fox", "The Quick brown FOX"),
        ("  two\t\tspaqes  here ", "two spaces here", "  two\t\tspaces  here "),
        ("naïve — “quptes” (1:2)", "na#ve # #quotes# #1#2#", "naïve — “quotes” (1:2)"),
        ("naïve", "naive", "naïve"),
        ("#hat", "that", "that"),
        ("what", "wh#t", "what"),
        ("H3LLO w0rld", "hello world", "HELLO world"),
        ("T3e", "the", "The"),
        ("T3", "to", "To"),
        ("oneqtwo", "one two", "one two"),
        ("on  two", "onetwo", "onetwo"),
        ("İstanbul caz", "i#stanbul cat", "İstanbul cat"),
        ("200 K", "200 k", "200 K"),
    ],
)
def test_only_replacements_are_carried_over(line: str, prediction: str, expected: str):
    source = normalise_spelling(line, TABLE)
    assert restore(line, align(source, prediction), TABLE) == expected


@pytest.mark.parametrize(
    ("line", "written", "expected"),
    [
        ("The cat", ["t", "h", "", " ", "c", "a", "t"], "The cat"),
        ("The cat", ["t", "h", "e", " ", "cc", "a", "ts"], "The cat"),
        ("The czt", ["", "", "", "", "c", "a", "t"], "The cat"),
        ("The czt", ["t", "h", "e", " ", "c", "ar", "t"], "The cat"),
        ("a—b", ["a", "", "b"], "a—b"),
    ],
)
def test_dropped_and_added_characters_change_nothing(line: str, written: list[str], expected: str):
    assert restore(line, written, TABLE) == expected


def spelling(length: int = 10) -> SpellingTask:
    return SpellingTask(SpellingSettings(length=length))


@pytest.mark.parametrize("change", ["same", "shorter", "longer", "nothing"])
def test_windows_join_without_loss_or_doubling_whatever_the_length_of_their_predictions(change: str):
    data, randomness = spelling(), random.Random(4)
    for _ in range(100):
        line = random_line(randomness, randomness.randint(0, 60))
        pieces = data.codec.cut(line)
        predictions = {
            "same": [window for window, _ in pieces],
            "shorter": [window[:4] + window[5:] for window, _ in pieces],
            "longer": [f"{window[:4]}q{window[4:]}" for window, _ in pieces],
            "nothing": ["" for _ in pieces],
        }[change]
        assert data.codec.join(line, pieces, predictions, raw=False) == line
        if change == "same":
            assert data.codec.join(line, pieces, predictions, raw=True) == normalise_spelling(line, TABLE)


def test_a_window_with_a_dropped_or_added_letter_neither_eats_nor_repeats_its_neighbour():
    data, line = spelling(), "one two three four"
    pieces = data.codec.cut(line)
    assert [window for window, _ in pieces] == ["one two th", "two three ", "three four"]
    assert [window[counted] for window, counted in pieces] == ["one two ", "thre", "e four"]

    def joined(*predictions: str) -> str:
        return data.codec.join(line, pieces, predictions, raw=True)

    assert joined("oe two th", "two three ", "three four") == "oe two three four"
    assert joined("onne two th", "two three ", "three four") == "onne two three four"
    assert joined("one two th", "to three ", "hree four") == "one two three four"
    assert joined("one two th", "two tree ", "three fours") == "one two tree fours"


def test_lines_without_characters_stay_as_they_are():
    data = spelling()
    for line in ("", "   ", "\t "):
        assert data.codec.cut(line) == []
        assert data.codec.join(line, [], [], raw=False) == line
        assert data.codec.join(line, [], [], raw=True) == ""
