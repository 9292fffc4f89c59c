"""Prefix BLEU against sacrebleu's n-gram counts, closed forms and a hand-computed example."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from pairs import UNKNOWN, as_words, random_pairs, scores_of
from sacrebleu.metrics import BLEU

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable, rewards_from_prefixes
from seqcritic.scores.bleu import BleuScore


def bleu_by_sacrebleu(metric: BLEU, prediction: str, reference: str) -> float:
    """Return |Y| times the smoothed sentence BLEU from sacrebleu's counts."""
    if not prediction:
        return 0.0
    counts = metric.sentence_score(prediction, [reference])
    mean = 1.0
    for correct, possible in zip(counts.counts, counts.totals, strict=True):
        mean *= ((correct + 1) / (possible + 1)) ** 0.25
    return counts.ref_len * min(1.0, math.exp(1 - counts.ref_len / counts.sys_len)) * mean


@pytest.mark.parametrize("unknown", [UNKNOWN, None])
def test_every_prefix_equals_sacrebleu_on_three_thousand_random_pairs(unknown: int | None):
    predictions, references = random_pairs(3_000, seed=0)
    scores = scores_of(BleuScore(unknown), predictions, references)
    metric = BLEU(tokenize="none", force=True)
    for prediction, reference, row in zip(predictions, references, scores.tolist(), strict=True):
        target = as_words(reference, "r", unknown)
        for end in range(len(prediction) + 1):
            expected = bleu_by_sacrebleu(metric, as_words(prediction[:end], "p", unknown), target)
            assert row[end] == pytest.approx(expected, abs=1e-9), (prediction[:end], reference)
        assert set(row[len(prediction) :]) == {row[len(prediction)]}, "the end token and padding earn nothing"


def test_a_prefix_by_hand():
    # "a b a" of "a b c a b": 3/3 words, 1/2 pairs, 0/1 triples, 0/0 quadruples; a second "a" is still allowed.
    (row,) = scores_of(BleuScore(None), [[2, 3, 2, 2]], [[2, 3, 4, 2, 3]]).tolist()
    precisions = Fraction(4, 4) * Fraction(2, 3) * Fraction(1, 2) * Fraction(1, 1)
    assert row[3] == pytest.approx(5 * math.exp(1 - 5 / 3) * float(precisions) ** 0.25, abs=1e-12)
    assert row[3] == pytest.approx(1.950563, abs=1e-6)
    # The third "a" is one too many: 3/4 words, 1/3 pairs, 0/2 triples, 0/1 quadruples.
    precisions = Fraction(4, 5) * Fraction(2, 4) * Fraction(1, 3) * Fraction(1, 2)
    assert row[4] == pytest.approx(5 * math.exp(1 - 5 / 4) * float(precisions) ** 0.25, abs=1e-12)
    assert row[:2] == [0.0, pytest.approx(5 * math.exp(-4), abs=1e-12)]


def test_a_perfect_prefix_pays_only_the_brevity_penalty():
    reference = [2, 3, 4, 2, 3, 5, 6]
    (row,) = scores_of(BleuScore(UNKNOWN), [reference], [reference]).tolist()
    expected = [0.0, *(7 * math.exp(1 - 7 / end) for end in range(1, 8)), 7.0]
    assert row == pytest.approx(expected, abs=1e-12)


def test_unknown_tokens_do_not_match_but_count():
    known = scores_of(BleuScore(None), [[2, 1]], [[2, 1]])[0, 2].item()
    unknown = scores_of(BleuScore(UNKNOWN), [[2, 1]], [[2, 1]])[0, 2].item()
    assert known == pytest.approx(2.0)
    assert unknown == pytest.approx(2 * (Fraction(2, 3) * Fraction(1, 2)) ** 0.25)


@pytest.mark.parametrize(
    ("prediction", "reference", "last"),
    [
        ([], [2, 3], 0.0),
        ([], [], 0.0),
        ([2, 3], [], 0.0),
        ([2], [2], 1.0),
        ([3], [2], 0.5**0.25),
        ([2] * 40, [2], (2 / 41 * 1 / 40 * 1 / 39 * 1 / 38) ** 0.25),
    ],
)
def test_edges(prediction: list[int], reference: list[int], last: float):
    # A longer neighbour, so that the edge cases stand in padding.
    for neighbours in [[], [[2, 3, 4, 5, 6]]]:
        scores = scores_of(BleuScore(UNKNOWN), [prediction, *neighbours], [reference, *neighbours])
        assert scores[0, 0] == 0
        assert scores[0, -1].item() == pytest.approx(last, abs=1e-12)


def test_large_token_ids_are_told_apart():
    numbers = [29_996, 29_997, 29_998, 29_999]
    assert scores_of(BleuScore(None), [numbers], [numbers])[0, -1].item() == pytest.approx(4.0)
    swapped = [29_997, 29_996, 29_999, 29_998]
    # All four words are correct, no pair, triple or quadruple is.
    assert scores_of(BleuScore(None), [swapped], [numbers])[0, -1].item() == pytest.approx(
        4 * (1 / 4 * 1 / 3 * 1 / 2) ** 0.25
    )


def test_rewards_sum_to_the_score_in_the_default_precision():
    predictions, references = random_pairs(50, seed=1)
    tokens, mask = pad(predictions)
    reference_tokens, _ = pad(references)
    lengths = torch.tensor([len(prediction) for prediction in predictions])
    reference_lengths = torch.tensor([len(reference) for reference in references])
    scores = BleuScore(UNKNOWN).prefix_scores(Scorable.of(tokens, lengths, reference_tokens, reference_lengths))
    assert scores.dtype == torch.float32
    rewards = rewards_from_prefixes(scores, mask)
    torch.testing.assert_close(rewards.sum(dim=1), scores[:, -1])
    assert not rewards.gather(1, lengths[:, None]).any(), "the end token earns nothing"


def test_what_follows_a_reference_or_a_prediction_does_not_count():
    tokens, lengths = torch.tensor([[2, 3, 4, 5]]), torch.tensor([3])
    score = BleuScore(None)
    cut = score.prefix_scores(Scorable.of(tokens, lengths, torch.tensor([[2, 3]]), torch.tensor([2])))
    followed = score.prefix_scores(Scorable.of(tokens, lengths, torch.tensor([[2, 3, 4, 5]]), torch.tensor([2])))
    assert torch.equal(followed, cut)
    assert cut[0, 4] == cut[0, 3]
