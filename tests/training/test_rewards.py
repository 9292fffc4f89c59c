"""Rewards are the score of what a person would read: the raw reference, in which no unknown token finds its like."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from seqcritic.config import ScoreSettings
from seqcritic.contracts.actor import SpecialTokens
from seqcritic.data.batch import pad
from seqcritic.data.translation import TranslationData
from seqcritic.data.vocabulary import END
from seqcritic.data_settings import TranslationSettings
from seqcritic.decoding.reference_beam import Violations
from seqcritic.diagnosing.load import choose_examples
from seqcritic.methods.beam_search_optimization import violation_costs
from seqcritic.methods.outlook import token_outlooks
from seqcritic.methods.rollout import prefix_scores
from seqcritic.training.rewards import build_score
from support import method_overrides, records, train_here, write_recipe

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
def task(tmp_path: Path) -> TranslationData:
    """Two words are known: the and sat."""
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES), encoding="utf-8")
    files = {split: {"pairs": str(tmp_path / "pairs.tsv")} for split in ("train", "valid", "test")}
    return TranslationData(TranslationSettings.model_validate(TASK | files), cache=tmp_path / "cache")


@pytest.mark.parametrize("kind", ["training", "validation", "diagnosis"])
def test_an_encoded_reference_earns_a_user_s_score_only_where_all_of_it_is_known(
    exact: str, task: TranslationData, kind: str
):
    valid = task.evaluation_set("valid")
    batches = {"training": [task.training_batch(0, 32, 1)], "validation": valid.batches}
    (batch,) = batches.get(kind) or choose_examples(valid, 32)
    assert "".join(batch.reference_texts()).count("UNK") == 8
    score = build_score(ScoreSettings(name=exact), task)
    assert not prefix_scores(score, SPECIAL, batch.references, batch.reference_mask, batch).any()
    known, _ = pad([task.target_vocabulary.encode("the sat")])
    assert score.prefix_scores(
        known, torch.tensor([2]), batch.references[:1], torch.tensor([3]), lambda: ["the sat"]
    ).tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize("name", ["edit-distance", "bleu", "rouge-l"])
def test_an_unknown_token_is_worth_as_much_as_any_wrong_one(task: TranslationData, name: str):
    batch = task.training_batch(0, 32, 1)
    score = build_score(ScoreSettings(name=name), task)
    unknown, wrong = task.unknown, 99
    assert bool((batch.references == unknown).any())
    others = torch.where(batch.references == unknown, wrong, batch.references)
    found, expected = (
        prefix_scores(score, SPECIAL, tokens, batch.reference_mask, batch) for tokens in (batch.references, others)
    )
    assert torch.equal(found, expected)
    promised = token_outlooks(score, SPECIAL, batch.references, batch.reference_mask, batch, 100).packed.rows
    assert torch.equal(promised[:, unknown], promised[:, wrong])


def test_without_case_the_reference_of_a_reward_has_none(exact: str, task: TranslationData):
    score = build_score(ScoreSettings(name=exact), _lowercase(task))
    known, _ = pad([task.target_vocabulary.encode("the sat")])
    found = score.prefix_scores(known, torch.tensor([2]), known, torch.tensor([2]), lambda: ["The Sat"])
    assert found.tolist() == [[0, 0, 1, 1]]


def _lowercase(task: TranslationData) -> TranslationData:
    tokens = task.settings.target_tokens.model_copy(update={"lowercase": True})
    settings = task.settings.model_copy(update={"target_tokens": tokens})
    return TranslationData.from_vocabularies(settings, task.vocabularies())


def test_in_a_part_of_a_reference_an_unknown_token_finds_no_like_either(exact: str, task: TranslationData):
    score = build_score(ScoreSettings(name=exact), task)
    references, _ = pad([task.target_vocabulary.encode("the cat"), task.target_vocabulary.encode("the sat")])
    rows = torch.tensor([0, 1])
    found = Violations(
        rows=rows, places=torch.tensor([1, 1]), starts=torch.zeros(2, dtype=torch.int64), tokens=references
    )
    assert violation_costs(found, references, score, SPECIAL).tolist() == [1, 0]


def test_reinforce_does_not_learn_to_write_unknown_words(exact: str, tmp_path: Path):
    """Four of five answers are outside of the vocabulary; paid for them, it would say nothing but unknown."""
    draw = random.Random(0)
    words = ["yes", "no", "so"]
    lines = [draw.choice(words) if draw.random() < 0.2 else f"rare{draw.randrange(99)}" for _ in range(400)]
    (tmp_path / "answers.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines), encoding="utf-8")
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
