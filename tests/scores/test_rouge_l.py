"""Prefix ROUGE-L against the rouge-score library, and by hand."""

from __future__ import annotations

import pytest
import torch
from pairs import UNKNOWN, as_words, random_pairs, scores_of
from rouge_score.rouge_scorer import RougeScorer

from seqcritic.contracts.score import Scorable
from seqcritic.scores.rouge_l import RougeLScore


@pytest.mark.parametrize("unknown", [UNKNOWN, None])
def test_every_prefix_equals_rouge_score_on_a_thousand_random_pairs(unknown: int | None):
    predictions, references = random_pairs(1_000, seed=0)
    scores = scores_of(RougeLScore(unknown), predictions, references)
    scorer = RougeScorer(["rougeL"])
    for prediction, reference, row in zip(predictions, references, scores.tolist(), strict=True):
        target = as_words(reference, "r", unknown)
        for end in range(len(prediction) + 1):
            expected = scorer.score(target, as_words(prediction[:end], "p", unknown))["rougeL"].fmeasure
            assert row[end] == pytest.approx(len(reference) * expected, abs=1e-9), (prediction[:end], reference)
        assert set(row[len(prediction) :]) == {row[len(prediction)]}, "the end token and padding earn nothing"


def test_prefixes_by_hand():
    # "b x a c" against "a b c": common subsequences of lengths 0, 1 (b), 1, 1, 2 (b c) in 0 to 4 tokens.
    (row,) = scores_of(RougeLScore(UNKNOWN), [[3, 9, 2, 4]], [[2, 3, 4]]).tolist()
    assert row == pytest.approx([0, 3 * 2 / 4, 3 * 2 / 5, 3 * 2 / 6, 3 * 4 / 7, 3 * 4 / 7], abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "reference", "last"),
    [([], [2, 3], 0.0), ([], [], 0.0), ([2, 3], [], 0.0), ([1], [1], 0.0), ([2] * 40, [2], 2 / 41)],
)
def test_edges(prediction: list[int], reference: list[int], last: float):
    # A longer neighbour, so that the edge cases stand in padding.
    for neighbours in [[], [[2, 3, 4, 5, 6]]]:
        scores = scores_of(RougeLScore(UNKNOWN), [prediction, *neighbours], [reference, *neighbours])
        assert scores[0, 0] == 0
        assert scores[0, -1].item() == pytest.approx(last, abs=1e-12)


def test_scores_have_the_default_precision():
    one = torch.ones(1, dtype=torch.int64)
    assert RougeLScore(None).prefix_scores(Scorable.of(one[None], one, one[None], one)).dtype == torch.float32


def test_what_follows_a_reference_or_a_prediction_does_not_count():
    tokens, lengths = torch.tensor([[2, 3, 4, 5]]), torch.tensor([3])
    score = RougeLScore(None)
    cut = score.prefix_scores(Scorable.of(tokens, lengths, torch.tensor([[2, 3]]), torch.tensor([2])))
    followed = score.prefix_scores(Scorable.of(tokens, lengths, torch.tensor([[2, 3, 4, 5]]), torch.tensor([2])))
    assert torch.equal(followed, cut)
    assert cut[0, 4] == cut[0, 3]
