"""A plain function of two texts as a score of prefixes, and the faults of such a function."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import torch
from rapidfuzz.distance import Levenshtein

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable, Score
from seqcritic.errors import NonFiniteError, UserError
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.shared.function import FunctionScore, as_score, load_function

LETTERS = "_abcdefg"


def decode(tokens: list[int]) -> str:
    return "".join(LETTERS[token] for token in tokens)


def negated_distance(prediction: str, reference: str) -> float:
    return -Levenshtein.distance(prediction, reference)


def prefix_scores(score: Score, predictions: list[str], references: list[str]) -> torch.Tensor:
    tokens, _ = pad([[LETTERS.index(letter) for letter in text] for text in predictions])
    reference_tokens, _ = pad([[LETTERS.index(letter) for letter in text] for text in references])
    lengths = torch.tensor([len(text) for text in predictions])
    reference_lengths = torch.tensor([len(text) for text in references])
    scorable = Scorable.of(tokens, lengths, reference_tokens, reference_lengths)
    texts = [(reference,) for reference in references]
    return score.prefix_scores(replace(scorable, decode=decode, read_references=lambda: texts))


def test_the_edit_distance_as_a_function_equals_the_edit_distance():
    predictions, references = ["abc", "", "gfedcba", "abba"], ["abd", "ab", "abcdefg", "a"]
    scores = prefix_scores(FunctionScore(negated_distance), predictions, references)
    # The module of its own lifts −d by |Y|, which is what subtracting the empty prefix's −|Y| does.
    expected = prefix_scores(EditDistanceScore(normalise=False), predictions, references)
    assert torch.equal(scores, expected)
    assert scores.dtype == torch.float32


def test_the_empty_prefix_is_subtracted_and_the_last_score_held():
    score = FunctionScore(lambda prediction, reference: 3.5 + len(prediction))
    assert prefix_scores(score, ["ab", "abc", ""], ["a", "a", "a"]).tolist() == [
        [0, 1, 2, 2, 2],
        [0, 1, 2, 3, 3],
        [0, 0, 0, 0, 0],
    ]


def test_a_repeated_pair_is_scored_once_in_a_call():
    calls = []

    def prepare_memory(prediction: str, reference: str) -> float:
        calls.append((prediction, reference))
        return 0.0

    score = FunctionScore(prepare_memory)
    prefix_scores(score, ["ab", "ac", "ab", "a"], ["g", "g", "g", "f"])
    assert calls == [("", "g"), ("a", "g"), ("ab", "g"), ("ac", "g"), ("", "f"), ("a", "f")]
    prefix_scores(score, ["a"], ["g"])
    assert calls[6:] == [("", "g"), ("a", "g")], "a function may change between calls, so nothing outlives one"


@pytest.mark.parametrize("value", [True, 1, numpy.float32(1), numpy.int64(1)])
def test_numbers_of_all_kinds_are_scores(value: object):
    score = FunctionScore(lambda prediction, reference: value if prediction else 0)
    assert prefix_scores(score, ["a"], ["a"]).tolist() == [[0, 1, 1]]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "returned NoneType, not a number, on prediction 'ab' and reference 'cd'; return a float"),
        ("1", "returned str, not a number, on prediction 'ab' and reference 'cd'; return a float"),
        (
            torch.ones(2),
            "returned Tensor of 2 numbers, not a number, on prediction 'ab' and reference 'cd'; return a float",
        ),
        (float("nan"), "returned nan on prediction 'ab' and reference 'cd'; return a finite number"),
        (float("inf"), "returned inf on prediction 'ab' and reference 'cd'; return a finite number"),
        (10**400, "returned inf on prediction 'ab' and reference 'cd'; return a finite number"),
    ],
)
def test_a_result_that_is_no_number_names_function_and_pair(value: object, fault: str):
    def odd(prediction: str, reference: str) -> object:
        return value if prediction == "ab" else 0.0

    with pytest.raises((UserError, NonFiniteError)) as raised:
        prefix_scores(FunctionScore(odd), ["abc"], ["cd"])
    assert str(raised.value) == f"score function {__name__}:{odd.__qualname__} {fault}"


def test_a_function_that_raises_names_function_and_pair_and_keeps_the_cause():
    def divide(prediction: str, reference: str) -> float:
        return len(reference) / len(prediction)

    with pytest.raises((UserError, NonFiniteError)) as raised:
        prefix_scores(FunctionScore(divide), ["abc"], ["cd"])
    assert str(raised.value) == (
        f"score function {__name__}:{divide.__qualname__} failed on prediction '' and reference 'cd': "
        "ZeroDivisionError('division by zero')"
    )
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_function_that_leaves_the_program_has_failed():
    def leave(prediction: str, reference: str) -> float:
        raise SystemExit(0)

    with pytest.raises(UserError, match=r"failed on prediction '' and reference 'cd': SystemExit\(0\)"):
        prefix_scores(FunctionScore(leave), ["abc"], ["cd"])


def test_a_callable_without_a_name_is_named_by_its_representation():
    score = FunctionScore(functools.partial(max, key=None))
    with pytest.raises(UserError, match=r"^score function functools\.partial\(.*\) returned str,"):
        prefix_scores(score, ["a"], ["a"])


def test_lists_go_in_and_a_list_comes_out_in_one_call():
    calls = []

    def shares(predictions: list[str], references: list[str]) -> list[float]:
        calls.append(len(predictions))
        return [len(prediction) / len(reference) for prediction, reference in zip(predictions, references, strict=True)]

    score = as_score(shares)
    assert prefix_scores(score, ["ab", "a"], ["gg", "g"]).tolist() == [[0, 0.5, 1, 1], [0, 1, 1, 1]]
    assert calls == [5], "different pairs of the batch, once"


def test_sources_are_given_to_a_function_that_names_them():
    def of_pair(prediction: str, reference: str, source: str) -> float:
        return float(prediction == source)

    def of_lists(predictions: list[str], references: list[str], sources: list[str]) -> list[float]:
        return [float(prediction == source) for prediction, source in zip(predictions, sources, strict=True)]

    for function in (of_pair, of_lists):
        assert as_score(function).statistics(["a", "b"], ["a", "a"], ["a", "c"])[:, 0].tolist() == [1, 0]


def test_of_several_references_the_best_counts_unless_all_are_asked_for():
    def same(prediction: str, reference: str) -> float:
        return float(prediction == reference)

    def number(predictions: list[str], all_references: list[list[str]]) -> list[float]:
        return [float(len(own)) for own in all_references]

    references = [("a", "b"), ("c",)]
    assert as_score(same).statistics(["b", "b"], references)[:, 0].tolist() == [1, 0]
    assert as_score(number).statistics(["b", "b"], references)[:, 0].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([1.0], "returned 1 numbers, not a list of 2; return one number for each prediction"),
        (3.0, "returned float, not a list of 2; return one number for each prediction"),
    ],
)
def test_a_list_of_another_length_is_refused(value: object, fault: str):
    def odd(predictions: list[str], references: list[str]) -> object:
        return value

    with pytest.raises(UserError) as raised:
        prefix_scores(as_score(odd), ["a"], ["g"])
    assert str(raised.value) == f"score function {__name__}:{odd.__qualname__} {fault}"


def test_a_score_is_a_score_as_it_is():
    score = EditDistanceScore()
    assert as_score(score) is score


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_scores.py").write_text("LIMIT = 3\n\ndef overlap(prediction, reference):\n    return 2.0\n")
    (tmp_path / "needs_more.py").write_text("import absent_package\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_function_is_loaded_by_name():
    assert load_function("my_scores:overlap")("a", "b") == 2.0
    assert load_function("os.path:join") is __import__("os").path.join


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        *(
            (path, f"'{path}' names no function; write 'module:function', as in 'my_scores:overlap'")
            for path in [
                "",
                "overlap",
                "my_scores.overlap",
                "my_scores:",
                ":overlap",
                "a:b:c",
                "./my_scores.py:overlap",
            ]
        ),
        (
            "my_score:overlap",
            "'my_score:overlap': no module 'my_score'; write it without '.py' and set PYTHONPATH to its folder",
        ),
        (
            "my_scores.py:overlap",
            "'my_scores.py:overlap': no module 'my_scores.py'; write it without '.py' and set PYTHONPATH to its folder",
        ),
        (
            "absent.inner:overlap",
            "'absent.inner:overlap': no module 'absent'; write it without '.py' and set PYTHONPATH to its folder",
        ),
        (
            "needs_more:overlap",
            "'needs_more:overlap': importing 'needs_more' failed: No module named 'absent_package'",
        ),
        ("broken:overlap", "'broken:overlap': importing 'broken' failed: ZeroDivisionError('division by zero')"),
        (
            "my_scores:overlpa",
            "'my_scores:overlpa': module 'my_scores' has no 'overlpa' (did you mean 'overlap'?)",
        ),
        ("my_scores:zzz", "'my_scores:zzz': module 'my_scores' has no 'zzz'"),
        ("my_scores:LIMIT", "'my_scores:LIMIT' is int, not a function"),
    ],
)
def test_a_name_that_cannot_be_loaded_is_explained_in_one_line(path: str, message: str):
    with pytest.raises((UserError, NonFiniteError)) as raised:
        load_function(path)
    assert str(raised.value) == message
