"""Corpus BLEU from summed statistics against sacrebleu on the same lines."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sacrebleu

from seqcritic.scores.bleu import BleuScore

WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", "dog", "Don't", "."]


def random_lines(count: int, seed: int) -> list[str]:
    source = random.Random(seed)
    return [" ".join(source.choices(WORDS, k=source.randint(0, 12))) for _ in range(count)]


@pytest.mark.parametrize(("tokenised", "tokenize"), [(False, "13a"), (True, "none")])
def test_totals_give_the_corpus_score(tokenised, tokenize):
    metric = BleuScore(tokenised=tokenised)
    for count in (1, 3, 50):
        predictions, references = random_lines(count, seed=count), random_lines(count, seed=count + 1)
        expected = sacrebleu.corpus_bleu(predictions, [references], tokenize=tokenize, force=True).score
        totals = metric.statistics(predictions, references).sum(axis=0)
        assert float(metric.of_totals(totals)) == pytest.approx(expected, abs=1e-9)


def test_scores_keep_the_shape_of_the_totals():
    metric = BleuScore()
    lines = random_lines(6, seed=0)
    totals = metric.statistics(lines, lines).reshape(2, 3, -1).sum(axis=1)
    assert metric.of_totals(totals).tolist() == pytest.approx([100.0, 100.0])
    assert metric.of_totals(np.zeros((2, 3, 10))).shape == (2, 3)


def test_signatures_name_the_tokenisation_and_the_version():
    assert (
        "|".join(BleuScore().signature())
        == f"score:BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    )
    assert "tok:none" in BleuScore(tokenised=True).signature()


def test_case_counts_unless_it_is_left_out():
    predictions, references = ["the cat sat on a mat ."], ["The Cat sat on a mat ."]
    plain, lowercase = BleuScore(), BleuScore(lowercase=True)
    assert float(plain.of_totals(plain.statistics(predictions, references).sum(axis=0))) < 90
    assert float(lowercase.of_totals(lowercase.statistics(predictions, references).sum(axis=0))) == pytest.approx(100.0)
    assert "case:lc" in lowercase.signature()
