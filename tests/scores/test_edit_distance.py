"""Edit-distance prefixes against rapidfuzz, and the corpus CER against jiwer."""

from __future__ import annotations

import itertools

import jiwer
import pytest
import torch
from pairs import UNKNOWN, as_words, random_pairs, scores_of
from rapidfuzz.distance import Levenshtein

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import rewards_from_prefixes
from seqcritic.errors import UserError
from seqcritic.scores.edit_distance import EditDistanceScore, prefix_distances


def test_rewards_equal_rapidfuzz_on_ten_thousand_random_pairs():
    predictions, references = random_pairs(10_000, seed=0)
    scores = scores_of(EditDistanceScore(normalise=False), predictions, references)
    rewards = rewards_from_prefixes(scores, pad(predictions)[1])
    for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        distances = [Levenshtein.distance(prediction[:end], reference) for end in range(len(prediction) + 1)]
        expected = [before - after for before, after in itertools.pairwise(distances)]
        assert rewards[row, : len(prediction)].tolist() == expected
        assert not rewards[row, len(prediction) :].any(), "the end token and padding earn nothing"


def test_the_ratio_is_the_negated_error_rate_up_to_a_constant():
    predictions, references = random_pairs(50, seed=1)
    scores = scores_of(EditDistanceScore(normalise=True), predictions, references)
    assert not scores[:, 0].any()
    for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        expected = 1 - Levenshtein.distance(prediction, reference) / len(reference)
        assert scores[row, -1].item() == pytest.approx(expected, abs=1e-6)


def test_prefix_distances_by_hand():
    # "ab" against "b": "" -> 1, "a" -> 1 (substitute), "ab" -> 1 (delete a).
    assert prefix_distances(torch.tensor([[1, 2]]), torch.tensor([[2]]), torch.tensor([1])).tolist() == [[1, 1, 1]]
    # An empty reference: every token is one too many.
    assert prefix_distances(torch.tensor([[1, 2]]), torch.tensor([[0]]), torch.tensor([0])).tolist() == [[0, 1, 2]]


def test_character_error_rate_equals_jiwer():
    predictions = ["the quick brown", "fox", "jumps ovr thee lazy", "dg"]
    references = ["the quack brown", "foxes", "jumps over the lazy", "dog"]
    totals = EditDistanceScore().statistics(predictions, references).sum(axis=0)
    assert EditDistanceScore().of_totals(totals) == pytest.approx(100 * jiwer.cer(references, predictions))


def test_the_cap_limits_a_sentence_to_its_length():
    assert EditDistanceScore(capped=True).statistics(["xxxxxxxx"], ["ab"]).tolist() == [[2.0, 2.0]]
    assert EditDistanceScore().statistics(["xxxxxxxx"], ["ab"]).tolist() == [[8.0, 2.0]]


def test_unknown_tokens_never_match():
    the, cat, sat = 2, UNKNOWN, 3
    scores = scores_of(EditDistanceScore(normalise=False, unknown=UNKNOWN), [[the, UNKNOWN, sat]], [[the, cat, sat]])
    assert scores[0].tolist() == [0, 1, 1, 2, 2], "the unknown word is one error"
    predictions, references = random_pairs(300, seed=4)
    found = scores_of(EditDistanceScore(normalise=False, unknown=UNKNOWN), predictions, references)[:, -1]
    for score, prediction, reference in zip(found.tolist(), predictions, references, strict=True):
        ours, theirs = as_words(prediction, "p", UNKNOWN).split(), as_words(reference, "r", UNKNOWN).split()
        assert score == len(reference) - Levenshtein.distance(ours, theirs)


def test_word_error_rate_equals_jiwer():
    predictions = ["the quick brown", "fox", "jumps ovr thee lazy", "dg"]
    references = ["the quack brown", "foxes ran", "jumps over the lazy", "dog"]
    metric = EditDistanceScore(split=str.split, rules="whitespace")
    totals = metric.statistics(predictions, references).sum(axis=0)
    assert metric.of_totals(totals) == pytest.approx(100 * jiwer.wer(references, predictions))
    assert metric.signature()[:2] == ["score:WER", "tok:whitespace"]


@pytest.mark.parametrize(
    ("metric", "unit"),
    [(EditDistanceScore(), "character"), (EditDistanceScore(split=str.split, rules="whitespace"), "word")],
)
def test_references_that_are_all_empty_have_no_error_rate(metric: EditDistanceScore, unit: str):
    with pytest.raises(UserError, match=rf"^[CW]ER: the references have no {unit} between them") as raised:
        metric.statistics(["a", "b"], ["", ""])
    assert "\n" not in str(raised.value)
    assert metric.statistics(["a", "b"], ["", "b"]).tolist() == [[1, 0], [0, 1]], "a single one counts its errors"
