"""Prefix ROUGE-1 and ROUGE-2 against the rouge-score library, and by hand."""

from __future__ import annotations

import pytest
import torch
from pairs import UNKNOWN, as_words, random_pairs, scores_of
from rouge_score.rouge_scorer import RougeScorer

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable
from seqcritic.scores.rouge_1 import Rouge1Score
from seqcritic.scores.rouge_2 import Rouge2Score
from seqcritic.scores.shared.rouge_n import RougeNScore

SCORES = pytest.mark.parametrize("kind", [Rouge1Score, Rouge2Score])


@SCORES
@pytest.mark.parametrize("unknown", [UNKNOWN, None])
def test_every_prefix_equals_rouge_score_on_random_pairs(kind: type[RougeNScore], unknown: int | None):
    predictions, references = random_pairs(500, seed=0)
    scores = scores_of(kind(unknown), predictions, references)
    scorer = RougeScorer([kind.library_name])
    for prediction, reference, row in zip(predictions, references, scores.tolist(), strict=True):
        target = as_words(reference, "r", unknown)
        for end in range(len(prediction) + 1):
            found = scorer.score(target, as_words(prediction[:end], "p", unknown))[kind.library_name].fmeasure
            assert row[end] == pytest.approx(len(reference) * found, abs=1e-9), (prediction[:end], reference)
        assert set(row[len(prediction) :]) == {row[len(prediction)]}, "the end token and padding earn nothing"


@SCORES
def test_of_several_references_the_best_counts_as_in_the_library(kind: type[RougeNScore]):
    predictions, firsts = random_pairs(300, seed=1)
    _, seconds = random_pairs(300, seed=2)
    tokens, mask = pad(predictions)
    padded, reference_mask = pad([each for own in zip(firsts, seconds, strict=True) for each in own])
    references, lengths = padded.view(300, 2, -1), (reference_mask.sum(dim=1) - 1).view(300, 2)
    found = kind(None).score(Scorable(tokens, mask.sum(dim=1) - 1, references, lengths))
    scorer = RougeScorer([kind.library_name])
    texts = [[as_words(own, "r", None) for own in rows] for rows in zip(firsts, seconds, strict=True)]
    own = kind(None)
    listed = [as_words(prediction, "p", None) for prediction in predictions]
    best = [
        scorer.score_multi(both, text)[kind.library_name].fmeasure for both, text in zip(texts, listed, strict=True)
    ]
    expected = [len(first) * value for first, value in zip(firsts, best, strict=True)]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)
    assert own.statistics(listed, texts)[:, 0].tolist() == pytest.approx([100 * value for value in best])
    assert any(best)


def test_pairs_by_hand():
    # "a b a b" against "a b c a b": pairs ab, ba, ab; of the reference ab, bc, ca, ab. Three in all minus ba are right.
    (row,) = scores_of(Rouge2Score(UNKNOWN), [[2, 3, 2, 3]], [[2, 3, 4, 2, 3]]).tolist()
    assert row == pytest.approx([0, 0, 5 * 2 / 5, 5 * 2 / 6, 5 * 4 / 7, 5 * 4 / 7], abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "reference", "last"),
    [([], [2, 3], 0.0), ([], [], 0.0), ([2, 3], [], 0.0), ([1], [1], 0.0), ([2], [2], 0.0), ([2, 3], [2, 3], 2.0)],
)
def test_edges(prediction: list[int], reference: list[int], last: float):
    for neighbours in [[], [[2, 3, 4, 5, 6]]]:
        scores = scores_of(Rouge2Score(UNKNOWN), [prediction, *neighbours], [reference, *neighbours])
        assert scores[0, 0] == 0
        assert scores[0, -1].item() == pytest.approx(last, abs=1e-12)


def test_what_follows_a_reference_does_not_count():
    tokens, lengths = torch.tensor([[2, 3, 4, 5]]), torch.tensor([4])
    score = Rouge1Score(None)
    cut = score.score(Scorable.of(tokens, lengths, torch.tensor([[2, 3]]), torch.tensor([2])))
    followed = score.score(Scorable.of(tokens, lengths, torch.tensor([[2, 3, 4, 5]]), torch.tensor([2])))
    assert torch.equal(followed, cut)
