"""Sums of scores: rewards, corpus figures, prefixes, signatures and the settings that name them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from pairs import UNKNOWN, random_pairs
from sacrebleu import corpus_bleu, corpus_ter

from seqcritic import weighted
from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.chrf import ChrfScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.rouge_l import RougeLScore
from seqcritic.scores.shared.function import FunctionScore
from seqcritic.scores.ter import TerScore
from seqcritic.scores.weighted_sum import WeightedSum
from seqcritic.settings.io import load_recipe

COUNT = 40


def text_of(ids: list[int]) -> str:
    return " ".join(f"w{each}" for each in ids)


def shortness(prediction: str, reference: str) -> float:
    return 1 / (1 + len(prediction.split()))


def random_batch() -> Scorable:
    predictions, references = random_pairs(COUNT, seed=4)
    (tokens, mask), (padded, reference_mask) = pad(predictions), pad(references)
    batch = Scorable.of(tokens, mask.sum(dim=1) - 1, padded, reference_mask.sum(dim=1) - 1)
    texts = [(text_of(own),) for own in references]
    return replace(batch, decode=text_of, read_references=lambda: texts)


def test_rewards_are_the_weighted_sum_of_the_parts_in_their_units_of_one():
    batch = random_batch()
    lengths = batch.reference_lengths[:, 0].double()
    bleu, ter, own = BleuScore(UNKNOWN), TerScore(), FunctionScore(shortness)
    found = WeightedSum([(bleu, 1.0), (ter, 0.5), (own, -2.0)]).score(batch).double()
    # BLEU is paid times |Y| already, TER in words, of which an empty prediction lacks |Y|; the function in its own.
    expected = bleu.score(batch) + 0.5 * ter.score(batch) - 2 * lengths * own.score(batch)
    assert torch.allclose(found, expected.double(), atol=1e-5)


def test_every_prefix_is_the_sum_of_the_parts_prefixes_and_so_is_what_tokens_promise():
    batch = random_batch()
    bleu, rouge, edits = BleuScore(UNKNOWN), RougeLScore(UNKNOWN), EditDistanceScore(unknown=UNKNOWN)
    both = WeightedSum([(bleu, 0.7), (rouge, 0.2), (edits, 0.1)])
    expected = 0.7 * bleu.prefix_scores(batch) + 0.2 * rouge.prefix_scores(batch) + 0.1 * edits.prefix_scores(batch)
    assert torch.allclose(both.prefix_scores(batch), expected, atol=1e-5)
    promised = 0.7 * bleu.lookahead(batch) + 0.2 * rouge.lookahead(batch) + 0.1 * edits.lookahead(batch)
    found = both.lookahead(batch)
    assert found is not None
    assert torch.allclose(found, promised, atol=1e-5)
    assert WeightedSum([(bleu, 1.0), (ChrfScore(), 1.0)]).lookahead(batch) is None


def test_the_corpus_score_adds_what_is_printed_and_takes_off_what_should_be_low():
    predictions, references = random_pairs(COUNT, seed=9)
    texts, wanted = [text_of(each) for each in predictions], [text_of(each) for each in references]
    score = WeightedSum([(BleuScore(), 1.0), (TerScore(), 0.2), (FunctionScore(shortness), 0.3)])
    totals = score.statistics(texts, wanted).sum(axis=0)
    mean = sum(shortness(text, "") for text in texts) / COUNT
    bleu, ter = corpus_bleu(texts, [wanted], force=True).score, corpus_ter(texts, [wanted]).score
    assert float(score.of_totals(totals)) == pytest.approx(bleu - 0.2 * ter + 0.3 * 100 * mean)
    assert [float(each) for each in score.of_parts(totals)] == pytest.approx([bleu, ter, mean])
    assert score.of_totals(score.statistics(texts, wanted)).shape == (COUNT,)


def test_the_signature_lists_the_parts_with_their_weights():
    name, bleu, ter = WeightedSum([(BleuScore(), 1.0), (TerScore(), 0.2)]).signature()
    assert name == "score:weighted-sum"
    assert bleu.startswith("part:1*BLEU(case:mixed,")
    assert ter.startswith("part:0.2*TER(case:lc,")
    assert "nrefs" not in bleu + ter


def test_a_recipe_names_parts():
    parts = "score.parts=[{name: bleu, weight: 1}, {name: 'support:word_share', weight: 0.2}]"
    settings = load_recipe("tatoeba-de-en", [parts, "score.name=weighted-sum", "critic.residual_on=none"])
    score = build_score(settings)
    assert [part.name for part in score.members()] == ["BLEU", "support:word_share"]
    assert score.surrogate == "length*(1*sentence-bleu+1+0.2*support.word_share):words"
    assert (
        load_recipe("demo", {"score": {"parts": [{"name": "chrf"}], "name": "weighted-sum"}}).score.parts[0].weight == 1
    )


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ("[{name: blue}]", r"^score\.parts\.0\.name: unknown score 'blue' \(did you mean 'bleu'\?\)"),
        ("[{name: bleu}, {name: ter, weight: 0}]", r"^score\.parts\.1\.weight: 0 leaves the score out"),
        ("[{name: bleu, weight: heavy}]", r"^score\.parts\.0\.weight: input should be a valid number"),
        ("[{name: bleu, weight: .inf}]", r"^score\.parts\.0\.weight: input should be"),
        ("[{weight: 1}]", r"^score\.parts\.0\.name: field required"),
        ("[{name: weighted-sum}]", r"^score\.parts\.0\.name: 'weighted-sum' cannot be a part"),
        ("[]", r"^score\.parts: give the scores to add up"),
    ],
)
def test_faults_of_parts_are_told_by_their_place(parts: str, fault: str):
    with pytest.raises(UserError, match=fault):
        load_recipe("demo", ["score.name=weighted-sum", f"score.parts={parts}"])


def test_parts_beside_the_name_of_a_single_score_are_refused():
    with pytest.raises(UserError, match=r"^score\.name: 'bleu', but score\.parts is given; set score\.name=weighted-"):
        load_recipe("tatoeba-de-en", ["score.parts=[{name: ter}]"])


def test_from_python_parts_may_be_names_functions_and_scores():
    given = weighted([("bleu", 1), (shortness, 0.2), (TerScore(), 0.1)])
    assert [weight for _, weight in given.parts] == [1.0, 0.2, 0.1]
    for wrong in ([], [("bleu",)], [("bleu", 0)], [(3, 1)], [("bleu", float("nan"))]):
        with pytest.raises(UserError, match="weighted: "):
            weighted(wrong)
