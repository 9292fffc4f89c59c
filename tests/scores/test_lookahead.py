"""What prefixes promise after every next token, against the scores of predictions that are written out."""

from __future__ import annotations

import random

import pytest
import torch
from pairs import UNKNOWN, random_pairs, scores_of

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable, Score
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.rouge_1 import Rouge1Score
from seqcritic.scores.rouge_2 import Rouge2Score
from seqcritic.scores.rouge_l import RougeLScore

ABSENT = 99  # in no reference
SCORES = {
    "edit distance": (EditDistanceScore(normalise=False), False),
    "edit distance, normalised": (EditDistanceScore(normalise=True), False),
    "edit distance with an unknown token": (EditDistanceScore(normalise=False, unknown=UNKNOWN), False),
    "BLEU": (BleuScore(UNKNOWN), True),
    "BLEU without an unknown token": (BleuScore(None), True),
    "ROUGE-L": (RougeLScore(UNKNOWN), True),
    "ROUGE-1": (Rouge1Score(UNKNOWN), True),
    "ROUGE-2": (Rouge2Score(UNKNOWN), True),
}


@pytest.mark.parametrize(("score", "is_filled"), SCORES.values(), ids=SCORES)
def test_an_lookahead_is_the_score_of_a_prediction_with_nothing_more_that_is_right(score: Score, is_filled: bool):
    predictions, references = random_pairs(25, seed=3)
    tokens, (padded, mask) = pad(predictions)[0], pad(references)
    found = score.lookahead(Scorable.of(tokens, pad(predictions)[1].sum(dim=1) - 1, padded, mask.sum(dim=1) - 1))
    assert found is not None
    assert found.shape == (*tokens.shape, padded.shape[1] + 1)
    for row, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        for step in range(len(prediction) + 1):
            for place, token in enumerate([*reference, *[ABSENT] * (found.shape[2] - len(reference))]):
                written = [*prediction[:step], token]
                written += [ABSENT] * (len(reference) - len(written) if is_filled else 0)
                expected = scores_of(score, [written], [reference])[0, -1]
                assert found[row, step, place].item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize(("score", "is_filled"), SCORES.values(), ids=SCORES)
def test_of_several_references_the_tokens_of_all_have_their_lookahead(score: Score, is_filled: bool):
    predictions, firsts = random_pairs(25, seed=5)
    _, seconds = random_pairs(25, seed=6)
    # A third that shares much with the first: its tokens stand elsewhere, some of them oftener.
    thirds = [random.Random(place).choices(first, k=len(first) + 2) for place, first in enumerate(firsts)]
    rows = [list(own) for own in zip(firsts, seconds, thirds, strict=True)]
    tokens, mask = pad(predictions)
    padded, reference_mask = pad([reference for own in rows for reference in own])
    references, lengths = padded.view(25, 3, -1), (reference_mask.sum(dim=1) - 1).view(25, 3)
    found = score.lookahead(Scorable(tokens, mask.sum(dim=1) - 1, references, lengths))
    assert found is not None
    width = references.shape[2]
    assert found.shape == (*tokens.shape, 3 * width + 1)
    for row, (prediction, own) in enumerate(zip(predictions, rows, strict=True)):
        shortest = min(map(len, own))
        known = {place: token for number, each in enumerate(own) for place, token in enumerate(each, number * width)}
        expected: dict[tuple[int, int], float] = {}
        for step in range(len(prediction) + 1):
            for token in {*known.values(), ABSENT}:
                written = [*prediction[:step], token]
                written += [ABSENT] * (shortest - len(written) if is_filled else 0)
                batch = Scorable(
                    torch.tensor([written]),
                    torch.tensor([len(written)]),
                    references[row : row + 1],
                    lengths[row : row + 1],
                )
                expected[step, token] = score.score(batch).item()
            promised = [expected[step, known.get(place, ABSENT)] for place in range(found.shape[2])]
            assert found[row, step].tolist() == pytest.approx(promised, abs=1e-5)
