"""Models to give away: an export holds the actor and its card, and neither text nor paths; packaged ones have names."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from seqcritic.cli import main
from seqcritic.data.vocabulary import SPELLING_ALPHABET
from seqcritic.errors import UserError
from seqcritic.evaluation.run import evaluate
from seqcritic.evaluation.stored import EVALUATIONS_FOLDER, StoredEvaluations
from seqcritic.files import seal
from seqcritic.training import export as exporting
from seqcritic.training import packaged
from seqcritic.training.checkpoint import load_weights, weights_of
from seqcritic.training.export import export
from seqcritic.training.model import find_weights, load_model
from support import Refusal, train_here

LINES = ["The cat sat on a mat, and then", "", "   ", "Ünïcödé — “q”", "1 2 3"]


@pytest.fixture(scope="module")
def result(lively_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `evaluate --json` prints, in a file."""
    path = tmp_path_factory.mktemp("results") / "river.json"
    path.write_text(json.dumps(evaluate(lively_run).to_dict()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def exported(lively_run: Path, result: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported model."""
    return export(lively_run, tmp_path_factory.mktemp("models") / "tiny-speller", results=[str(result)])


@pytest.fixture
def shipped(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the exported model as a packaged one, seen from an empty folder."""
    monkeypatch.setattr(packaged, "PRETRAINED", exported.parent)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return exported.name


def test_an_export_is_the_actor_a_description_and_a_card(exported: Path, lively_run: Path):
    assert sorted(path.name for path in exported.iterdir()) == [
        "MODEL_CARD.md",
        "actor.safetensors",
        "description.json",
    ]
    weights = load_file(exported / "actor.safetensors")
    expected = load_file(lively_run / "model/actor.safetensors")
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert load_model(exported).predict(LINES) == load_model(lively_run).predict(LINES)


def test_an_export_tells_no_place_and_no_text(exported: Path, recipe: Path, finished_run: Path, tmp_path: Path):
    started = train_here(recipe, tmp_path / "later", f"start.actor={finished_run}", "phases.train.updates=1")
    for folder in (exported, export(started, tmp_path / "second")):
        told = (folder / "description.json").read_text() + (folder / "MODEL_CARD.md").read_text()
        assert str(recipe.parent) not in told
        assert str(finished_run) not in told
        assert os.sep + "tmp" not in told
        assert "text.txt" in told
    assert json.loads((exported / "description.json").read_text())["settings"]["data"]["train"] == []


def test_the_card_tells_what_the_model_is(exported: Path, result: Path):
    card = (exported / "MODEL_CARD.md").read_text(encoding="utf-8")
    found = json.loads(result.read_text(encoding="utf-8"))
    low, high = found["interval"]
    assert card.startswith("# tiny-speller\n\n")
    assert f"| river | CER {found['score']:.2f} | {low:.2f} to {high:.2f} | 30 |" in card
    assert found["signature"].replace("|", "\\|") in card
    for row in ("| train text | text.txt |", "| L, characters of a window | 6 |", "| seed | 1 |", "| recipe | tiny |"):
        assert row in card
    num_weights = sum(weight.numel() for weight in weights_of(load_model(exported).actor).values())
    assert f"| weights | {num_weights:,}, stored as float32 |" in card
    assert "It replaces characters and does nothing else" in card


def test_a_card_without_results_says_so_and_tells_the_validation_score(finished_run: Path, tmp_path: Path):
    run = tmp_path / "run"
    shutil.copytree(finished_run, run, ignore=shutil.ignore_patterns(EVALUATIONS_FOLDER))
    card = (export(run, tmp_path / "model") / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Not evaluated on a test set" in card
    best = [json.loads(line) for line in (finished_run / "metrics.jsonl").read_text().splitlines()]
    score = [record["best_score"] for record in best if record["kind"] == "valid"][-1]
    assert f"| best validation score, by which it was chosen | {score:.2f} |" in card


def test_the_card_of_a_run_that_was_evaluated_has_its_score(lively_run: Path, tmp_path: Path):
    run = tmp_path / "run"
    shutil.copytree(lively_run, run, ignore=shutil.ignore_patterns(EVALUATIONS_FOLDER))
    assert "Not evaluated" in (export(run, tmp_path / "before") / "MODEL_CARD.md").read_text(encoding="utf-8")
    result = StoredEvaluations(run).on_test()
    card = (export(run, tmp_path / "after") / "MODEL_CARD.md").read_text(encoding="utf-8")
    low, high = result.interval
    assert f"| text.txt | CER {result.score:.2f} | {low:.2f} to {high:.2f} | 30 |" in card


def test_an_edited_card_is_taken_as_it_is(lively_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    card = tmp_path / "card.md"
    card.write_text("# Mine\n\nFür alle.\n", encoding="utf-8")
    assert main(["export", str(lively_run), "--out", str(tmp_path / "model"), "--card", str(card)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'model'}\n"
    assert (tmp_path / "model/MODEL_CARD.md").read_bytes() == card.read_bytes()


def test_half_the_bits_predict_the_same(finished_run: Path, tmp_path: Path):
    whole, half = export(finished_run, tmp_path / "whole"), export(finished_run, tmp_path / "half", half=True)
    assert {weight.dtype for weight in load_file(half / "actor.safetensors").values()} == {torch.float16}
    sizes = [(folder / "actor.safetensors").stat().st_size for folder in (whole, half)]
    assert sizes[1] < 0.75 * sizes[0]
    assert {weight.dtype for weight in weights_of(load_model(half).actor).values()} == {torch.float32}
    assert load_model(half).predict(LINES) == load_model(whole).predict(LINES)
    assert "stored as float16" in (half / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_half_the_bits_are_refused_where_they_change_a_prediction(
    lively_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def spoil(network: torch.nn.Module, weights: dict[str, torch.Tensor], place: str) -> None:
        half = next(iter(weights.values())).dtype == torch.float16
        load_weights(network, {name: -weight if half else weight for name, weight in weights.items()}, place)

    monkeypatch.setattr(exporting, "load_weights", spoil)
    with pytest.raises(UserError, match=r"half: \d+ of 20 predictions of validation sentences would change"):
        export(lively_run, tmp_path / "model", half=True)
    assert not (tmp_path / "model").exists()


def test_faults_of_an_export_are_named(
    lively_run: Path, exported: Path, recipe: Path, result: Path, tmp_path: Path, refusal: Refusal
):
    out = tmp_path / "model"
    assert f"seqcritic: out: {exported} exists already" in refusal("export", lively_run, "--out", exported)
    assert "no such run or model: nowhere" in refusal("export", "nowhere", "--out", out)
    assert "card: cannot read nowhere.md" in refusal("export", lively_run, "--out", out, "--card", "nowhere.md")
    assert "seqcritic: result: cannot read" in refusal("export", lively_run, "--out", out, "--result", "nowhere.json")
    (tmp_path / "wrong.json").write_text('{"score": 3}', encoding="utf-8")
    line = refusal("export", lively_run, "--out", out, "--result", result, "--result", tmp_path / "wrong.json")
    assert "wrong.json is not what seqcritic evaluate --json prints" in line
    assert "seqcritic: half: it compares predictions on the validation text: data.valid: no text given" in refusal(
        "export", exported, "--out", out, "--half"
    )
    checkpoint = sorted((lively_run / "checkpoints").iterdir())[-1]
    description = json.loads((checkpoint / "description.json").read_text())
    description["progress"]["finished"] = False
    early = tmp_path / "early"
    early.mkdir()
    (early / "actor.safetensors").write_bytes((checkpoint / "actor.safetensors").read_bytes())
    (early / "description.json").write_text(json.dumps(seal(description)))
    assert "early is not finished; let it finish" in refusal("export", early, "--out", out)
    assert not out.exists()


def test_a_packaged_model_goes_by_its_name(
    shipped: str, exported: Path, recipe: Path, result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert find_weights(shipped) == exported
    assert load_model(shipped).predict(LINES) == load_model(exported).predict(LINES)
    assert evaluate(shipped, overrides=[f"data.test={recipe.parent / 'text.txt'}"]).score == pytest.approx(
        json.loads(result.read_text(encoding="utf-8"))["score"]
    )
    settings = ["actor.hidden=16", f"start.actor={shipped}", "phases.train.updates=0", "method.name=likelihood"]
    run = train_here(recipe, tmp_path / "run", *settings)
    capsys.readouterr()
    assert load_model(run).predict(LINES) == load_model(exported).predict(LINES)
    assert main(["models"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(
        "tiny-speller  Corrects replaced characters, 6 characters at a time; trained at noise 0.3 by "
    )
    assert told.count("\n") == 1


def test_a_name_that_is_a_folder_too_is_refused(shipped: str, lively_run: Path, tmp_path: Path, refusal: Refusal):
    Path(shipped).symlink_to(lively_run)
    line = refusal("predict", shipped)
    assert f"'{shipped}' is a packaged model and also a place in this folder; give ./{shipped}" in line
    assert find_weights(f"./{shipped}") == Path(shipped) / "model"
    assert find_weights(Path(shipped)) == Path(shipped) / "model"


def test_names_and_places_that_are_neither(shipped: str, refusal: Refusal):
    line = "no such run or model: tiny-spell (did you mean 'tiny-speller'?); packaged: tiny-speller"
    assert refusal("predict", "tiny-spell").endswith(line)
    assert "no such run or model: ." not in refusal("evaluate", ".")
    assert "data.test: no text given" in refusal("evaluate", shipped)


def test_an_export_has_no_critic_to_inspect(finished_run: Path, tmp_path: Path, refusal: Refusal):
    model = export(finished_run, tmp_path / "model")
    line = refusal("inspect", model, "--source", "a cat", "--reference", "a cat")
    assert line == f"seqcritic: {model} was exported without its critic; give the run that it comes from"


def test_no_packaged_models_are_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(packaged, "PRETRAINED", tmp_path / "nothing")
    assert main(["models"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", packaged.packaged_names())
def test_what_the_package_ships_works(name: str):
    folder = packaged.PRETRAINED / name
    assert packaged.summary(name)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
    assert not any(str(place) in (folder / "description.json").read_text() for place in ("/home", "/root", "/tmp"))
    answer, empty = load_model(name).predict(["Thr quikc brown fxo — 狐", ""])
    assert answer[0].isupper()
    assert answer[20] + answer[22:] == "—狐"
    assert empty == ""
    assert set(load_model(name).predict(["Thr quikc brown fxo"], raw=True)[0]) <= set(SPELLING_ALPHABET)
