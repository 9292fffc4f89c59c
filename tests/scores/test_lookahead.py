"""What prefixes promise after every next token, against the scores of predictions that are written out."""

from __future__ import annotations

import pytest
from pairs import UNKNOWN, random_pairs, scores_of

from seqcritic.contracts.score import Scorable, Score
from seqcritic.data.batch import pad
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.rouge_l import RougeLScore

ABSENT = 99  # in no reference
SCORES = {
    "edit distance": (EditDistanceScore(normalise=False), False),
    "edit distance, normalised": (EditDistanceScore(normalise=True), False),
    "edit distance with an unknown token": (EditDistanceScore(normalise=False, unknown=UNKNOWN), False),
    "BLEU": (BleuScore(UNKNOWN), True),
    "BLEU without an unknown token": (BleuScore(None), True),
    "ROUGE-L": (RougeLScore(UNKNOWN), True),
}


@pytest.mark.parametrize(("score", "is_filled"), SCORES.values(), ids=SCORES)
def test_an_outlook_is_the_score_of_a_prediction_with_nothing_more_that_is_right(score: Score, is_filled: bool):
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
