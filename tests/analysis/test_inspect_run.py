"""A trained run is loaded with its critic, and what cannot be inspected is refused in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from seqcritic.analysis.inspect import inspect
from seqcritic.errors import UserError
from seqcritic.files import seal
from seqcritic.report.values import END
from seqcritic.training.model import load_model
from support import train_here, write_recipe


def test_a_run_is_inspected_with_its_own_prediction(finished_run: Path) -> None:
    table = inspect(finished_run, "th cqt", "th cat", top=4)
    assert "".join(table.source) == "th cqt"
    assert (table.source[-1], table.reference[-1]) == (END, END)
    assert table.prediction == load_model(finished_run).predict(["th cqt"], raw=True)[0]
    assert {len(step.best) for step in table.steps} == {4}
    assert table.title == "tiny, actor-critic, seed 1"
    assert table.score_name == "reference length − edit distance"


def test_a_given_prediction_is_followed(finished_run: Path) -> None:
    table = inspect(finished_run, "cqt", "cat", prediction="c t")
    assert [step.token for step in table.steps] == ["c", " ", "t", END]
    assert [step.reward for step in table.steps] == [1.0, 0.0, 1.0, 0.0]
    assert table.prediction == "c t"
    assert [step.token for step in inspect(finished_run, "cqt", "cat", prediction="").steps] == [END]


def test_texts_are_brought_to_the_alphabet(finished_run: Path) -> None:
    table = inspect(finished_run, "  Ça\tB ", "ÉCO")
    assert table.source == ("#", "a", " ", "b", END)
    assert table.reference == ("#", "c", "o", END)


def test_texts_longer_than_those_trained_on_are_noted(finished_run: Path) -> None:
    assert inspect(finished_run, "the ca", "the ca").note == ""
    note = inspect(finished_run, "the cat", "the ca").note
    assert note == "The model was trained on texts of at most 6 characters; this one has 7."


def test_a_run_that_is_not_finished_is_noted(finished_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finished_run, tmp_path / "run")
    shutil.rmtree(run / "model")
    latest = sorted((run / "checkpoints").iterdir())[-1] / "description.json"
    description = json.loads(latest.read_text())
    description["progress"]["finished"] = False
    latest.write_text(json.dumps(seal(description)))
    assert "not finished" in inspect(run, "cat", "cat").note


def test_a_run_without_a_critic_is_refused(lively_run: Path) -> None:
    with pytest.raises(UserError, match=r"has no critic \(likelihood trains none\); give a run of actor-critic"):
        inspect(lively_run, "cat", "cat")


@pytest.mark.parametrize(("source", "reference", "name"), [("", "cat", "source"), ("cat", " \t ", "reference")])
def test_empty_texts_are_refused(finished_run: Path, source: str, reference: str, name: str) -> None:
    with pytest.raises(UserError, match=f"^{name}: empty; give"):
        inspect(finished_run, source, reference)


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such run or model"):
        inspect(tmp_path / "nothing", "cat", "cat")


@pytest.fixture(scope="module")
def translation_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has hardly begun to translate numbers, its vocabularies stored with it."""
    folder = tmp_path_factory.mktemp("translation")
    pairs = folder / "pairs.tsv"
    pairs.write_text("eins zwei\tone two\nzwei drei\ttwo three\ndrei eins\tthree one\n" * 4, encoding="utf-8")
    files = {split: {"pairs": str(pairs)} for split in ("train", "valid", "test")}
    data = {"task": "translation", "maximum_length": 4, **files}
    recipe = write_recipe(folder, data=data, score={"name": "bleu"})
    return train_here(recipe, folder / "run", *(f"phases.{phase}.updates=2" for phase in ("actor", "critic", "train")))


def test_a_translation_is_inspected_word_by_word(translation_run: Path) -> None:
    table = inspect(translation_run, "eins vier zwei", "one two", prediction="one two")
    assert table.source == ("eins", "<unk>", "zwei", END)
    assert [step.token for step in table.steps] == ["one", "two", END]
    assert table.prediction == "one two"
    assert table.score_name == "smoothed sentence BLEU × reference length"
    assert table.score == pytest.approx(2.0)
    assert "at most 4 tokens; this one has 5" in inspect(translation_run, "eins " * 5, "one").note


def test_an_empty_side_of_a_translation_is_refused(translation_run: Path) -> None:
    with pytest.raises(UserError, match=r"^reference: empty"):
        inspect(translation_run, "eins", "  ")
