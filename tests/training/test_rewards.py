"""Rewards are the score of what a person would read: the raw reference, in which no unknown token finds its like."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch

from seqcritic.analysis.diagnosis_input import choose_examples
from seqcritic.comparing.gather import compare_runs
from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch, RawTexts, pad
from seqcritic.contracts.score import Score
from seqcritic.data.pairs import PairsFromFiles
from seqcritic.data.vocabulary import END
from seqcritic.decoding.beam_violations import Violations
from seqcritic.evaluation.evaluate import build_score
from seqcritic.evaluation.run import evaluate
from seqcritic.methods.beam_search_optimization import violation_costs
from seqcritic.methods.lookahead import token_lookaheads
from seqcritic.methods.rollout import prefix_scores, score_tokens, whole_scores
from seqcritic.scores.shared.function import as_score
from seqcritic.settings.data import TranslationSettings
from seqcritic.settings.tree import ScoreSettings, Settings
from support import method_overrides, records, train_here, write_recipe

SPECIAL = SpecialTokens(end=(END,), padding=END)
LINES = ["the cat sat", "the cat ran", "the dog sat", "the UNK sat"] * 8
TASK = {"task": "translation", "target_tokens": {"kind": "words", "size": 2}}

SPECIAL = SpecialTokens(end=(END,), padding=END)


@pytest.fixture
def exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a function that is 1 where prediction and reference are the same text."""
    (tmp_path / "exact_scores.py").write_text(
        "def exact(prediction, reference):\n    return float(prediction == reference)\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    return "exact_scores:exact"


@pytest.fixture
def task(tmp_path: Path) -> PairsFromFiles:
    """Two words are known: the and sat."""
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES), encoding="utf-8")
    files = {split: {"pairs": str(tmp_path / "pairs.tsv")} for split in ("train", "valid", "test")}
    return PairsFromFiles(TranslationSettings.model_validate(TASK | files), cache=tmp_path / "cache")


def score_of(name: str, task: PairsFromFiles) -> Score:
    return build_score(Settings(data=task.settings, score=ScoreSettings(name=name)))


def text_scores(score: Score, task: PairsFromFiles, prediction: str, reference: str) -> list[list[float]]:
    """Prefix scores of one prediction against a raw reference."""
    (ids,) = task.codec.target.encode_all([prediction])
    tokens, mask = pad([ids])
    texts = RawTexts.of([""], [(reference,)], task.codec.decode)
    return prefix_scores(score, SPECIAL, tokens, mask, Batch(tokens, mask, tokens, mask, texts)).tolist()


@pytest.mark.parametrize("kind", ["training", "validation", "diagnosis"])
def test_an_encoded_reference_earns_a_user_s_score_only_where_all_of_it_is_known(
    exact: str, task: PairsFromFiles, kind: str
):
    valid = task.evaluation_set("valid")
    batches = {"training": [task.training_batch(0, 32, 1)], "validation": valid.batches}
    (batch,) = batches.get(kind) or choose_examples(valid, 32)
    assert batch.texts is not None
    assert "".join(text for own in batch.texts.references() for text in own).count("UNK") == 8
    score = score_of(exact, task)
    assert not prefix_scores(score, SPECIAL, batch.references, batch.reference_mask, batch).any()
    assert text_scores(score, task, "the sat", "the sat") == [[0, 0, 1, 1]]


@pytest.mark.parametrize("name", ["edit-distance", "bleu", "rouge-l"])
def test_an_unknown_token_is_worth_as_much_as_any_wrong_one(task: PairsFromFiles, name: str):
    batch = task.training_batch(0, 32, 1)
    score = score_of(name, task)
    unknown, wrong = task.codec.special.unknown, 99
    assert bool((batch.references == unknown).any())
    others = torch.where(batch.references == unknown, wrong, batch.references)
    found, expected = (
        prefix_scores(score, SPECIAL, tokens, batch.reference_mask, batch) for tokens in (batch.references, others)
    )
    assert torch.equal(found, expected)
    promised = token_lookaheads(score, SPECIAL, batch.references, batch.reference_mask, batch, 100).packed.rows
    assert torch.equal(promised[:, unknown], promised[:, wrong])


def test_without_case_the_reference_of_a_reward_has_none(exact: str, task: PairsFromFiles):
    score = score_of(exact, _lowercase(task))
    assert text_scores(score, task, "the sat", "The Sat") == [[0, 0, 1, 1]]


def _lowercase(task: PairsFromFiles) -> PairsFromFiles:
    tokens = task.settings.target_tokens.model_copy(update={"lowercase": True})
    settings = task.settings.model_copy(update={"target_tokens": tokens})
    return PairsFromFiles(settings, codec=task.codec)


def test_in_a_part_of_a_reference_an_unknown_token_finds_no_like_either(exact: str, task: PairsFromFiles):
    score = score_of(exact, task)
    references, _ = pad([task.codec.target.encode("the cat"), task.codec.target.encode("the sat")])
    rows = torch.tensor([0, 1])
    found = Violations(
        rows=rows, positions=torch.tensor([1, 1]), starts=torch.zeros(2, dtype=torch.int64), tokens=references
    )
    assert violation_costs(found, references, score, SPECIAL, task.codec.decode).tolist() == [1, 0]


def test_without_shaping_whole_predictions_alone_are_scored_and_earn_the_same(task: PairsFromFiles):
    asked: list[str] = []

    def length(prediction: str, reference: str) -> float:
        asked.append(prediction)
        return 2.0 + len(prediction.split())

    batch, score = task.training_batch(0, 32, 1), as_score(length)
    rewards = score_tokens(score, SPECIAL, batch.references, batch.reference_mask, batch, shaping=False)
    assert {len(prediction.split()) for prediction in asked} == {0, 3}, "no prefix but the empty one"
    shaped = score_tokens(score, SPECIAL, batch.references, batch.reference_mask, batch, shaping=True)
    assert torch.equal(rewards[:, -1], shaped.sum(dim=1))
    assert not rewards[:, :-1].any()


@pytest.mark.parametrize("name", ["edit-distance", "bleu", "rouge-l", "chrf"])
def test_a_prediction_like_any_of_several_references_is_paid(tmp_path: Path, name: str):
    # Vocabularies are of first references, from which the actor learns to write.
    targets = {"x": ["the cat sat down", "a dog ran off"], "y": "the cat sat down", "z": "a dog ran off"}
    lines = [{"source": source, "target": target} for source, target in targets.items()] * 5
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    files = {split: {"pairs": str(path)} for split in ("train", "valid", "test")}
    settings = TranslationSettings.model_validate({"task": "translation"} | files)
    task = PairsFromFiles(settings, cache=tmp_path / "cache")
    batch, score = task.training_batch(0, 15, 1), score_of(name, task)
    other, mask = pad(task.codec.target.encode_all(["a dog ran off"]) * 15)
    assert batch.texts is not None
    found: dict[str, set[float]] = {source: set() for source in targets}
    for source, value in zip(
        batch.texts.sources(), whole_scores(score, SPECIAL, other, mask, batch).tolist(), strict=True
    ):
        found[source].add(value)
    assert found["x"] == found["z"]
    assert max(found["y"]) < min(found["x"])
    valid = task.evaluation_set("valid")
    (evaluated,) = valid.batches
    assert set(whole_scores(score, SPECIAL, other, mask, evaluated).tolist()) == found["x"] | found["y"]
    best, worst = (score.statistics(["a dog ran off"], valid.all_references[row : row + 1])[0] for row in (0, 1))
    assert (score.of_totals(best) > score.of_totals(worst)) == score.higher_is_better


def test_reinforce_does_not_learn_to_write_unknown_words(exact: str, tmp_path: Path):
    """Four of five answers are outside of the vocabulary; paid for them, it would say nothing but unknown."""
    draw = random.Random(0)
    words = ["yes", "no", "so"]
    lines = [draw.choice(words) if draw.random() < 0.2 else f"rare{draw.randrange(99)}" for _ in range(400)]
    text = "".join(f"{line}\t{line}\n" for line in lines) + "or\tso\n"  # pairs that are all alike are refused
    (tmp_path / "answers.tsv").write_text(text, encoding="utf-8")
    files = {split: {"pairs": str(tmp_path / "answers.tsv")} for split in ("train", "valid", "test")}
    data = {"task": "translation", **files, "target_tokens": {"size": 3}, "source_tokens": {"size": 3}}
    phases = {"actor": {"updates": 40, "learning_rate": 0.01}, "train": {"updates": 120, "learning_rate": 0.01}}
    training = {"batch": 16, "evaluate_every": 120, "log_every": 40}
    recipe = write_recipe(tmp_path, data=data, score={"name": exact}, phases=phases, training=training)
    folder = train_here(recipe, tmp_path / "run", *method_overrides("reinforce"))
    found = [record for record in records(folder) if record["phase"] == "train"]
    sampled = [record["sampled_return"] for record in found if record["kind"] == "train"][-1]
    validated = [record["valid_score"] for record in found if record["kind"] == "valid"][-1]
    assert sampled <= validated + 0.1
    assert sampled < 0.4, "no more than the share of answers that can be given"


@pytest.mark.parametrize("name", ["listed_scores:found", "character-error-rate", "exact-match", "chrf", "ter"])
def test_a_score_of_texts_is_trained_for_and_reported_with_two_references(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The function takes lists of predictions, of all references and of sources, as a recipe names it."""
    (tmp_path / "listed_scores.py").write_text(
        "def found(predictions, all_references, sources):\n"
        "    assert all(len(own) == 2 for own in all_references) and set(sources) <= {'ja', 'nein'}\n"
        "    return [float(one in own) for one, own in zip(predictions, all_references)]\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    lines = [{"source": "ja", "target": ["yes", "yeah"]}, {"source": "nein", "target": ["no", "nope"]}] * 8
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    data = {"task": "translation", **{split: {"pairs": str(path)} for split in ("train", "valid", "test")}}
    phases = {"actor": {"updates": 2}, "train": {"updates": 2}}
    training = {"batch": 4, "evaluate_every": 2, "log_every": 1}
    score = {"name": name, "shaping": False}
    recipe = write_recipe(tmp_path, data=data, score=score, phases=phases, training=training)
    folder = train_here(recipe, tmp_path / "run", *method_overrides("self-critical"))
    result = evaluate(folder)
    assert "|nrefs:2|" in result.signature
    assert result.references[:2] == ["yes", "no"]
    example = compare_runs([folder]).examples[0]
    assert (example.reference, *example.further_references) == ("yes", "yeah")
