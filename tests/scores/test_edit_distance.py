"""Edit-distance prefixes against rapidfuzz, and the corpus CER against jiwer."""

from __future__ import annotations

import itertools

import jiwer
import pytest
import torch
from pairs import random_pairs, scores_of
from rapidfuzz.distance import Levenshtein

from seqcritic.data.batch import pad
from seqcritic.scores.edit_distance import CharacterErrorRate, EditDistanceScore, prefix_distances
from seqcritic.scores.score import rewards_from_prefixes


def test_rewards_equal_rapidfuzz_on_ten_thousand_random_pairs():
    predictions, references = random_pairs(10_000, seed=0)
    scores = scores_of(EditDistanceScore(normalise=False), predictions, references)
    rewards = rewards_from_prefixes(scores, pad(predictions)[1], shaping=True)
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
    totals = CharacterErrorRate().statistics(predictions, references).sum(axis=0)
    assert CharacterErrorRate().of_totals(totals) == pytest.approx(100 * jiwer.cer(references, predictions))


def test_the_cap_limits_a_sentence_to_its_length():
    assert CharacterErrorRate(capped=True).statistics(["xxxxxxxx"], ["ab"]).tolist() == [[2.0, 2.0]]
    assert CharacterErrorRate().statistics(["xxxxxxxx"], ["ab"]).tolist() == [[8.0, 2.0]]
