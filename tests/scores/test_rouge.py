"""Prefix ROUGE-L against the rouge-score library, and by hand."""

from __future__ import annotations

import random

import pytest
import torch
from rouge_score.rouge_scorer import RougeScorer

from seqcritic.data.batch import pad
from seqcritic.scores.rouge import RougeLScore

UNKNOWN = 1


def random_pairs(count: int, seed: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return pairs of few words, unknown ones among them; half of the predictions are corrupted references."""
    source = random.Random(seed)
    predictions, references = [], []
    for _ in range(count):
        num_words = source.choice([2, 4, 9])
        reference = [source.randint(UNKNOWN, num_words) for _ in range(source.randint(1, 12))]
        if source.random() < 0.5:
            prediction = [token for token in reference if source.random() < 0.8]
            prediction.insert(source.randint(0, len(prediction)), source.randint(UNKNOWN, num_words))
        else:
            prediction = [source.randint(UNKNOWN, num_words) for _ in range(source.randint(0, 15))]
        predictions.append(prediction)
        references.append(reference)
    return predictions, references


def scores_of(predictions: list[list[int]], references: list[list[int]], score: RougeLScore) -> torch.Tensor:
    """Return the prefix scores [B, T + 1] in double precision; T includes the end token."""
    tokens, _ = pad(predictions)
    reference_tokens, _ = pad(references)
    lengths = torch.tensor([len(prediction) for prediction in predictions])
    reference_lengths = torch.tensor([len(reference) for reference in references])
    torch.set_default_dtype(torch.float64)
    try:
        return score.prefix_scores(tokens, lengths, reference_tokens, reference_lengths)
    finally:
        torch.set_default_dtype(torch.float32)


def as_words(tokens: list[int], side: str, unknown: int | None) -> str:
    """Return a text in which no unknown token equals any other word."""
    return " ".join(f"{side}{place}" if token == unknown else f"w{token}" for place, token in enumerate(tokens))


@pytest.mark.parametrize(("unknown", "rescale"), [(UNKNOWN, True), (None, True), (UNKNOWN, False)])
def test_every_prefix_equals_rouge_score_on_a_thousand_random_pairs(unknown: int | None, rescale: bool):
    predictions, references = random_pairs(1_000, seed=0)
    scores = scores_of(predictions, references, RougeLScore(unknown, rescale))
    scorer = RougeScorer(["rougeL"])
    for prediction, reference, row in zip(predictions, references, scores.tolist(), strict=True):
        target = as_words(reference, "r", unknown)
        scale = len(reference) if rescale else 1
        for end in range(len(prediction) + 1):
            expected = scorer.score(target, as_words(prediction[:end], "p", unknown))["rougeL"].fmeasure
            assert row[end] == pytest.approx(scale * expected, abs=1e-9), (prediction[:end], reference)
        assert set(row[len(prediction) :]) == {row[len(prediction)]}, "the end token and padding earn nothing"


def test_prefixes_by_hand():
    # "b x a c" against "a b c": common subsequences of lengths 0, 1 (b), 1, 1, 2 (b c) in 0 to 4 tokens.
    (row,) = scores_of([[3, 9, 2, 4]], [[2, 3, 4]], RougeLScore(UNKNOWN)).tolist()
    assert row == pytest.approx([0, 3 * 2 / 4, 3 * 2 / 5, 3 * 2 / 6, 3 * 4 / 7, 3 * 4 / 7], abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "reference", "last"),
    [([], [2, 3], 0.0), ([], [], 0.0), ([2, 3], [], 0.0), ([1], [1], 0.0), ([2] * 40, [2], 2 / 41)],
)
def test_edges(prediction: list[int], reference: list[int], last: float):
    # A longer neighbour, so that the edge cases stand in padding.
    for neighbours in [[], [[2, 3, 4, 5, 6]]]:
        scores = scores_of([prediction, *neighbours], [reference, *neighbours], RougeLScore(UNKNOWN))
        assert scores[0, 0] == 0
        assert scores[0, -1].item() == pytest.approx(last, abs=1e-12)


def test_scores_have_the_default_precision():
    one = torch.ones(1, dtype=torch.int64)
    assert RougeLScore(None).prefix_scores(one[None], one, one[None], one).dtype == torch.float32


def test_what_follows_a_reference_or_a_prediction_does_not_count():
    tokens, lengths = torch.tensor([[2, 3, 4, 5]]), torch.tensor([3])
    score = RougeLScore(None)
    cut = score.prefix_scores(tokens, lengths, torch.tensor([[2, 3]]), torch.tensor([2]))
    followed = score.prefix_scores(tokens, lengths, torch.tensor([[2, 3, 4, 5]]), torch.tensor([2]))
    assert torch.equal(followed, cut)
    assert cut[0, 4] == cut[0, 3]
