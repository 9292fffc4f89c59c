"""The score on training examples: what it is worth, and that nothing else depends on it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from rapidfuzz.distance import Levenshtein

from seqcritic.data.corruption import derive_seed
from seqcritic.data.spelling import SpellingTask
from seqcritic.data.windows import Windows
from seqcritic.decoding.search import GREEDY, find_best
from seqcritic.errors import Interrupted
from seqcritic.evaluation.evaluate import Evaluated, predict_batches
from seqcritic.settings.io import load_recipe
from seqcritic.training import held_out
from seqcritic.training.model import load_model
from seqcritic.training.train import train
from support import method_overrides, outcome, records, train_here, write_recipe

ON = ["training.train_examples=12", "data.windows=words"]


def train_scores(folder: Path) -> list[tuple[str, int]]:
    return [(record["phase"], record["update"]) for record in records(folder) if "train_score" in record]


def score_at(folder: Path, update: int) -> float:
    [score] = [
        record["train_score"]
        for record in records(folder)
        if record["kind"] == "valid" and record["phase"] == "train" and record["update"] == update
    ]
    return float(score)


def test_nothing_else_depends_on_it(recipe: Path, finished_run: Path, tmp_path: Path):
    overrides = method_overrides("actor-critic")
    evaluated = train_here(recipe, tmp_path / "evaluated", *overrides, "training.train_examples=12")
    assert train_scores(evaluated) == [(phase, update) for phase in ("actor", "train") for update in range(0, 21, 5)]
    assert train_scores(finished_run) == []
    with_it = outcome(evaluated)
    with_it["metrics"] = [
        {name: value for name, value in each.items() if name != "train_score"} for each in with_it["metrics"]
    ]
    assert with_it == outcome(finished_run)


def test_it_is_the_error_rate_of_greedy_corrections_of_training_windows(recipe: Path, tmp_path: Path):
    overrides = [*method_overrides("likelihood"), *ON, "training.snapshot_every=10", "data.evaluation_seed=3"]
    folder = train_here(recipe, tmp_path / "run", *overrides)
    model = load_model(folder / "snapshots/00000010")
    assert isinstance(model.task, SpellingTask)
    windows: Windows = model.task.windows("train")
    positions = np.linspace(0, len(windows) - 1, 12).round().astype(np.int64)
    noise = torch.Generator().manual_seed(derive_seed(3, "train"))
    batch = windows.examples(positions, 0.3, noise)
    predictions = predict_batches(model.actor, model.task, [batch], GREEDY)
    references = model.codec.texts(batch.references)
    errors = sum(Levenshtein.distance(*pair) for pair in zip(predictions, references, strict=True))
    assert score_at(folder, 10) == pytest.approx(100 * errors / sum(map(len, references)))
    assert len(set(references)) > 6


def test_it_is_the_bleu_of_greedy_translations_of_pairs_that_are_trained_on(tmp_path: Path):
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    texts = [" ".join(words[n % 4 : n % 4 + 1 + n % 3]) for n in range(40)] + [" ".join(words)] * 20  # too long
    pairs = tmp_path / "pairs.tsv"
    lines = [f"{text}\t{text}\n" for text in texts[:-1]] + [f"{texts[-1]}\t{' '.join(words[::-1])}\n"]  # not all alike
    pairs.write_text("".join(lines), encoding="utf-8")
    split = {"pairs": str(pairs)}
    data = {"task": "translation", "train": split, "valid": split, "test": split, "maximum_length": 4}
    recipe = write_recipe(tmp_path, data=data, score={"name": "bleu"})
    longer = ["phases.actor.updates=100", "training.snapshot_every=10", "training.train_examples=60"]
    folder = train_here(recipe, tmp_path / "run", *method_overrides("likelihood"), *longer)
    model = load_model(folder / "snapshots/00000010")
    predictions = [
        model.codec.texts(find_best(model.actor, *model.codec.encode_sources([text]), GREEDY))[0] for text in texts[:40]
    ]
    expected = sacrebleu.corpus_bleu(predictions, [texts[:40]]).score
    assert score_at(folder, 10) == pytest.approx(expected)
    assert 0 < expected < 100


def test_a_stop_while_training_examples_are_evaluated_changes_nothing(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Without progress the actor's phase ends at its second stale evaluation, if each is counted once.
    still = ["phases.actor.learning_rate=1e-12", "phases.actor.patience=2"]
    overrides = [*method_overrides("actor-critic"), *ON, *still]
    whole = train_here(recipe, tmp_path / "whole", *overrides)
    evaluated: list[int] = []
    evaluate_actor = held_out.evaluate_actor

    def stop_in_the_fourth(*arguments: Any, **options: Any) -> Evaluated:
        evaluated.append(len(arguments[2].references))
        if len(evaluated) == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return evaluate_actor(*arguments, **options)

    monkeypatch.setattr(held_out, "evaluate_actor", stop_in_the_fourth)
    with pytest.raises(Interrupted):
        train(load_recipe(recipe, overrides), tmp_path / "stopped")
    assert evaluated == [20, 12, 20, 12]
    assert train_scores(tmp_path / "stopped") == [("actor", 0)]
    assert outcome(train_here(recipe, tmp_path / "stopped", *overrides)) == outcome(whole)
    assert train_scores(whole)[:3] == [("actor", 0), ("actor", 5), ("actor", 10)]
    assert train_scores(whole)[3] == ("train", 0)
