"""CIDEr against pycocoevalcap where it is installed, and against its definition written out with vectors."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from pairs import UNKNOWN, Sequences, random_pairs

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable, ScoreOptions
from seqcritic.errors import UserError
from seqcritic.scores.cider import CiderScore

COUNT = 150


def several() -> tuple[Sequences, list[Sequences]]:
    """Predictions with two or three references each, the last of three like the first but for an insertion."""
    predictions, firsts = random_pairs(COUNT, seed=11)
    _, seconds = random_pairs(COUNT, seed=12)
    pairs = list(zip(firsts, seconds, strict=True))
    rows = [
        [first, second] + ([[*first[:2], 3, *first[2:]]] * (place % 2)) for place, (first, second) in enumerate(pairs)
    ]
    return predictions, rows


def as_text(tokens: list[int]) -> str:
    return " ".join(f"w{token}" for token in tokens)


def written_out(prediction: list[int], references: Sequences, documents: list[Sequences]) -> float:
    """CIDEr-D of Vedantam et al. 2015, section 4 and their release: vectors over all n-grams of the two captions."""
    values = []
    for order in range(1, 5):

        def grams(tokens: list[int], order: int = order) -> Counter[tuple[int, ...]]:
            return Counter(tuple(tokens[place : place + order]) for place in range(len(tokens) - order + 1))

        for reference in references:
            ours, theirs = grams(prediction), grams(reference)
            axes = sorted({*ours, *theirs})
            having = [sum(any(axis in grams(own) for own in document) for document in documents) for axis in axes]
            idf = np.array([math.log(len(documents) / max(1, count)) for count in having])
            one = np.array([ours[axis] for axis in axes]) * idf
            two = np.array([theirs[axis] for axis in axes]) * idf
            norms = float(np.linalg.norm(one) * np.linalg.norm(two))
            cosine = float(np.minimum(one, two) @ two) / norms if norms else 0.0
            apart = max(len(prediction) - 1, 0) - max(len(reference) - 1, 0)
            values.append(cosine * math.exp(-(apart**2) / 72))
    return 10 * sum(values) / len(values)


def test_the_corpus_score_is_its_definition():
    predictions, references = several()
    texts = [[as_text(own) for own in row] for row in references]
    found = CiderScore().statistics([as_text(each) for each in predictions], texts)[:, 0]
    expected = [written_out(each, own, references) for each, own in zip(predictions, references, strict=True)]
    assert found.tolist() == pytest.approx(expected, abs=1e-9)
    assert max(expected) > 3


def test_the_corpus_score_is_that_of_pycocoevalcap():
    library = pytest.importorskip("pycocoevalcap.cider.cider", reason="pycocoevalcap is not installed")
    predictions, references = several()
    texts = [[as_text(own) for own in row] for row in references]
    listed = [as_text(each) for each in predictions]
    mean, each = library.Cider().compute_score(dict(enumerate(texts)), {k: [text] for k, text in enumerate(listed)})
    own = CiderScore()
    statistics = own.statistics(listed, texts)
    assert statistics[:, 0].tolist() == pytest.approx(each.tolist(), abs=1e-9)
    assert float(own.of_totals(statistics.sum(axis=0))) == pytest.approx(mean)


@pytest.mark.parametrize("unknown", [None, UNKNOWN])
def test_every_prefix_is_rewarded_by_the_frequencies_of_the_validation_references(unknown: int | None):
    predictions, references = several()
    _, documents = several()
    documents = documents[:40]
    score = CiderScore(unknown)
    score.read_corpus(lambda: documents)
    most = max(len(row) for row in references)
    filled = [row + [row[0]] * (most - len(row)) for row in references]  # as batches are filled
    tokens, mask = pad(predictions)
    padded, reference_mask = pad([own for row in filled for own in row])
    lengths = (reference_mask.sum(dim=1) - 1).view(COUNT, most)
    torch.set_default_dtype(torch.float64)
    try:
        found = score.prefix_scores(Scorable(tokens, mask.sum(dim=1) - 1, padded.view(COUNT, most, -1), lengths))
    finally:
        torch.set_default_dtype(torch.float32)

    def differing(row: list[int], side: int) -> list[int]:
        # An unknown token of the prediction equals none of a reference; one that stands twice is one word there.
        return [-side if token == unknown else token for token in row]

    marked = [[differing(own, 3) for own in row] for row in documents]
    for prediction, own, row in zip(predictions, references, found.tolist(), strict=True):
        different = [own[0], *(each for each in own[1:] if each != own[0])]
        wanted = [differing(each, 2) for each in different]
        for end in range(len(prediction) + 1):
            expected = len(own[0]) / 10 * written_out(differing(prediction[:end], 1), wanted, marked)
            assert row[end] == pytest.approx(expected, abs=1e-9)
        assert set(row[len(prediction) :]) == {row[len(prediction)]}


def test_rewards_without_references_to_count_are_refused_in_one_line():
    one = torch.ones(1, dtype=torch.int64)
    batch = Scorable.of(one[None], one, one[None], one)
    with pytest.raises(UserError, match="rewards need references"):
        CiderScore().score(batch)
    score = CiderScore()
    score.read_corpus(lambda: [[[1]]])
    with pytest.raises(UserError, match=r"data\.valid has one example"):
        score.score(batch)


def test_words_are_those_of_the_model_s_rules_and_case_is_left_out_where_the_model_has_none():
    options = ScoreOptions("words", split=lambda text: text.replace(".", " .").split(), rules="words.9", lowercase=True)
    score = CiderScore.build(options)
    right, wrong = score.statistics(["A cat.", "a dog"], [["a cat ."], ["no horse"]])[:, 0].tolist()
    assert right == pytest.approx(7.5), "10 for words, pairs and triples; of three words there is nothing longer"
    assert wrong == 0
    assert score.signature() == ["score:CIDEr", "n:4", "sigma:6", "df:references", "tok:words.9", "case:lc"]
