"""Corpus scores and rewards against their libraries on random pairs, with one reference and with several."""

from __future__ import annotations

import random
from itertools import pairwise

import jiwer
import pytest
import sacrebleu
import torch
from pairs import Sequences, random_pairs
from rapidfuzz.distance import Levenshtein
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

from seqcritic.contracts.batch import pad
from seqcritic.contracts.registry import SCORES
from seqcritic.contracts.score import Scorable, Score, ScoreOptions
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.rouge_l import RougeLScore

WORDS = ["the", "cat", "sat", "on", "a", "mat", ",", "dog", "Don't", "."]
TOKENISED = ScoreOptions("whitespace", split=str.split, rules="whitespace")
LINES, REFERENCES = 60, 3


def random_lines(seed: int, shortest: int = 1) -> list[str]:
    source = random.Random(seed)
    return [" ".join(source.choices(WORDS, k=source.randint(shortest, 12))) for _ in range(LINES)]


PREDICTIONS = random_lines(0, shortest=0)
STREAMS = [random_lines(1 + number) for number in range(REFERENCES)]


def corpus_score(score: Score, streams: list[list[str]]) -> float:
    rows = list(zip(*streams, strict=True))
    return float(score.of_totals(score.statistics(PREDICTIONS, rows).sum(axis=0)))


@pytest.mark.parametrize("count", [1, REFERENCES])
@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("bleu", lambda streams: sacrebleu.corpus_bleu(PREDICTIONS, streams, tokenize="none", force=True)),
        ("chrf", lambda streams: sacrebleu.corpus_chrf(PREDICTIONS, streams)),
        ("ter", lambda streams: sacrebleu.corpus_ter(PREDICTIONS, streams)),
    ],
)
def test_sacrebleu_finds_the_same(name, library, count):
    score = SCORES.find(name).build(TOKENISED)
    assert corpus_score(score, STREAMS[:count]) == pytest.approx(library(STREAMS[:count]).score, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "library"),
    [("character-error-rate", jiwer.cer), ("token-error-rate", jiwer.wer), ("word-error-rate", jiwer.wer)],
)
def test_jiwer_finds_the_same(name, library):
    found = corpus_score(SCORES.find(name).build(TOKENISED), STREAMS[:1])
    assert found == pytest.approx(100 * library(STREAMS[0], PREDICTIONS), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "split"), [("character-error-rate", list), ("token-error-rate", str.split), ("word-error-rate", str.split)]
)
def test_of_several_references_the_nearest_is_counted(name, split):
    """Among equally near ones the longest, which is the lowest rate."""
    edits = length = 0
    for prediction, *own in zip(PREDICTIONS, *STREAMS, strict=True):
        nearest = [(Levenshtein.distance(split(prediction), split(text)), -len(split(text))) for text in own]
        edits, length = edits + min(nearest)[0], length - min(nearest)[1]
    assert corpus_score(SCORES.find(name).build(TOKENISED), STREAMS) == pytest.approx(100 * edits / length)


def test_rouge_score_finds_the_same():
    scorer = RougeScorer(["rougeL"])
    rows = list(zip(*STREAMS, strict=True))
    best = [scorer.score_multi(own, text)["rougeL"].fmeasure for own, text in zip(rows, PREDICTIONS, strict=True)]
    assert corpus_score(RougeLScore(), STREAMS) == pytest.approx(100 * sum(best) / LINES)


def test_an_exact_match_is_a_match_with_any_reference():
    score = SCORES.find("exact-match").build(ScoreOptions())
    found = score.statistics(["a cat", "a dog", "A cat "], [["x", "a cat"], ["a cat"], ["A cat"]])
    assert found[:, 0].tolist() == [100, 0, 100]
    without = SCORES.find("exact-match").build(ScoreOptions(lowercase=True))
    assert without.statistics(["a cat"], ["A Cat"])[0, 0] == 100


def test_sacrebleu_finds_the_sentence_scores_of_rewards():
    batch = text_batch(STREAMS)
    rows = list(zip(*STREAMS, strict=True))
    chrf = [sacrebleu.sentence_chrf(text, own).score / 100 for text, own in zip(PREDICTIONS, rows, strict=True)]
    found = SCORES.find("chrf").build(TOKENISED).score(batch)
    assert found.tolist() == pytest.approx([7 * value for value in chrf], abs=1e-5)
    ter = [sacrebleu.sentence_ter(text, own) for text, own in zip(PREDICTIONS, rows, strict=True)]
    nothing = [sacrebleu.sentence_ter("", own) for own in rows]
    saved = [empty.num_edits - full.num_edits for empty, full in zip(nothing, ter, strict=True)]
    assert SCORES.find("ter").build(TOKENISED).score(batch).tolist() == saved


def text_batch(streams: list[list[str]]) -> Scorable:
    """The lines as predictions of one token each, whose first reference has seven."""
    ids = torch.arange(LINES)[:, None]
    lengths = torch.tensor([bool(text) for text in PREDICTIONS]).long()
    seven = torch.full((LINES, 1), 7)
    rows = list(zip(*streams, strict=True))
    return Scorable(
        ids, lengths, seven[:, :, None], seven, lambda tokens: PREDICTIONS[tokens[0]] if tokens else "", lambda: rows
    )


def token_batch(predictions: Sequences, *references: Sequences) -> Scorable:
    padded = [pad([*rows, [0] * 20])[0][:-1] for rows in references]
    lengths = torch.tensor([[len(row) for row in rows] for rows in references]).T
    counts = torch.tensor([len(row) for row in predictions])
    return Scorable(pad(predictions)[0], counts, torch.stack(padded, dim=1), lengths)


@pytest.fixture
def several() -> tuple[Sequences, Sequences, Sequences]:
    predictions, references = random_pairs(400, seed=5)
    others = [second + first[-2:] for first, second in pairwise([*references, references[0]])]
    return predictions, references, others


def text_of(ids: list[int]) -> str:
    return " ".join(f"w{each}" for each in ids)


def test_rewards_of_bleu_with_several_references_have_sacrebleu_s_counts(several):
    found = BleuScore().prefix_scores(token_batch(*several)).double()
    metric = BLEU(tokenize="none", force=True, effective_order=True)
    for row, (prediction, first, second) in enumerate(zip(*several, strict=True)):
        for end in range(1, len(prediction) + 1):
            counts = metric.sentence_score(text_of(prediction[:end]), [text_of(first), text_of(second)])
            mean = 1.0
            for correct, possible in zip(counts.counts, counts.totals, strict=True):
                mean *= ((correct + 1) / (possible + 1)) ** 0.25
            brevity = torch.tensor(1 - counts.ref_len / counts.sys_len).clamp(max=0).exp().item()
            assert found[row, end].item() == pytest.approx(len(first) * brevity * mean, abs=1e-5)


def test_rewards_of_rouge_l_with_several_references_are_by_the_best(several):
    found = RougeLScore().score(token_batch(*several))
    scorer = RougeScorer(["rougeL"])
    for value, prediction, first, second in zip(found.tolist(), *several, strict=True):
        best = scorer.score_multi([text_of(first), text_of(second)], text_of(prediction))["rougeL"].fmeasure
        assert value == pytest.approx(len(first) * best, abs=1e-5)


@pytest.mark.parametrize("normalise", [False, True])
def test_rewards_of_edit_distances_with_several_references_are_by_the_nearest(several, normalise: bool):
    found = EditDistanceScore(normalise).score(token_batch(*several))
    for value, prediction, *own in zip(found.tolist(), *several, strict=True):
        distances = [Levenshtein.distance(prediction, reference) for reference in own]
        shares = [1 - distance / len(reference) for distance, reference in zip(distances, own, strict=True)]
        expected = max(shares) if normalise else min(map(len, own)) - min(distances)
        assert value == pytest.approx(expected, abs=1e-5)
