"""Translation through the command line: train for BLEU, evaluate by beam, predict raw lines; other scores by name."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from seqcritic.cli import main
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
from seqcritic.errors import UserError
from seqcritic.evaluation.run import evaluate
from seqcritic.files import seal, unseal
from seqcritic.scores.shared.function import as_score
from seqcritic.settings.io import Overrides
from seqcritic.training.export import export
from seqcritic.training.model import load_model
from support import complaints, records, run, word_share

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "hund": "dog", "katze": "cat"}


@pytest.fixture(scope="module")
def translation_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of word-by-word translation that trains in seconds, its files beside it."""
    folder = tmp_path_factory.mktemp("translation")
    draw = random.Random(0)
    for split, count in (("train", 200), ("valid", 20), ("test", 30)):
        sentences = [draw.choices(list(WORDS), k=draw.randint(1, 5)) for _ in range(count)]
        (folder / f"{split}.de").write_text("".join(f"{' '.join(words)}.\n" for words in sentences), encoding="utf-8")
        targets = [" ".join(WORDS[word] for word in words) for words in sentences]
        (folder / f"{split}.en").write_text("".join(f"{target}.\n" for target in targets), encoding="utf-8")
    sizes = {"embedding": 16, "hidden": 16, "attention": 16, "initial_range": None}
    files = {
        split: {"source": f"{folder}/{split}.de", "target": f"{folder}/{split}.en"}
        for split in ("train", "valid", "test")
    }
    tree = {
        "name": "tiny-translation",
        "data": {"task": "translation", **files},
        "actor": sizes,
        "critic": sizes,
        "score": {"name": "bleu"},
        "method": {"name": "actor-critic", "likelihood_weight": 0.1, "gamma_theta": 0.1, "gamma_phi": 0.1},
        "phases": {
            "actor": {"updates": 120, "learning_rate": 0.01},
            "critic": {"updates": 20, "learning_rate": 0.01},
            "train": {"updates": 10, "learning_rate": 0.001},
        },
        "training": {"batch": 16, "evaluate_every": 20, "log_every": 10},
    }
    path = folder / "translation.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def translation_run(translation_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "translation"
    assert main(["train", str(translation_recipe), "--out", str(out)]) == 0
    return out


def test_it_learns_and_says_how_ready_the_critic_is(translation_run: Path):
    scores = [record["valid_score"] for record in records(translation_run) if "valid_score" in record]
    assert max(scores) > 10 + scores[0]
    shares = [
        record["held_out_explained_variance"] for record in records(translation_run) if record["kind"] == "critic"
    ]
    assert len(shares) == 2
    assert all(share <= 1 for share in shares)


def test_evaluate_by_beam_with_a_tuned_length_reward(translation_run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["evaluate", str(translation_run), "--beam", "3", "--tune-rho", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["score_name"] == "BLEU"
    assert result["beam"] == 3
    assert "search:beam:3|rho:" in result["signature"]
    assert "tok:13a" in result["signature"]
    assert "tok:none" in result["further"]["BLEU, tokenised lower-case as in the paper"][1]
    assert 0 <= result["further"]["chrF"][0] <= 100
    assert main(["evaluate", str(translation_run)]) == 0
    assert "chrF" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["pairs", "nested pairs", "pairs of a split", "source and target"])
def test_other_text_takes_the_place_of_the_run_s_own(form: str, translation_run: Path, tmp_path: Path):
    overrides: Overrides
    if "pairs" in form:
        place = tmp_path / "other.tsv"
        place.write_text("eins hund.\tone dog.\n", encoding="utf-8")
        overrides = {
            "pairs": [f"data.test.pairs={place}"],
            "nested pairs": {"data": {"test": {"pairs": [str(place)]}}},
            "pairs of a split": {"data.test": {"pairs": [str(place)]}},
        }[form]
    else:
        (tmp_path / "other.de").write_text("eins hund.\n", encoding="utf-8")
        (tmp_path / "other.en").write_text("one dog.\n", encoding="utf-8")
        overrides = [f"data.test.source={tmp_path}/other.de", f"data.test.target={tmp_path}/other.en"]
    assert evaluate(translation_run, overrides=overrides).references == ["one dog."]


def test_an_unknown_split_is_refused(translation_run: Path):
    with pytest.raises(UserError, match="no split 'tets'; there are train, valid, test"):
        evaluate(translation_run, "tets")


def test_one_text_is_no_list_of_lines(translation_run: Path):
    with pytest.raises(UserError, match="a list of lines"):
        load_model(translation_run).predict("eins zwei")


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("data.valid.source=nowhere.de", "data.valid.source: no such file: nowhere.de"),
        ("start.actor=nowhere", "start.actor: no such run or model: nowhere"),
        ("score.name=support:word_shape", "score.name: 'support:word_shape': module 'support' has no 'word_shape'"),
    ],
)
def test_what_needs_no_reading_is_refused_before_the_text_is_read(
    override: str, complaint: str, translation_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["train", str(translation_recipe), "--out", str(tmp_path / "run"), override]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "data.train:" not in said


def test_tuning_a_greedy_search_is_refused(translation_run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["evaluate", str(translation_run), "--tune-rho"]) == 2
    assert "seqcritic: beam: greedy search has no length reward to tune" in capsys.readouterr().err


def test_predict_takes_raw_lines_without_the_training_text(translation_run: Path, translation_recipe: Path):
    hidden = translation_recipe.parent / "train.de"
    moved = hidden.rename(hidden.with_suffix(".gone"))
    try:
        done = run("predict", translation_run, "--beam", "3", input="Eins zwei.\n\nhund katze.\n")
        several = run("predict", translation_run, "--beam", "3", "--nbest", "2", input="eins zwei.\n")
    finally:
        moved.rename(hidden)
    lines = done.stdout.split("\n")
    assert done.returncode == 0, done.stderr
    assert [bool(line) for line in lines] == [True, False, True, False], "an empty line stays empty"
    assert " ." not in done.stdout, "predictions are detokenised"
    first, second, blank, _ = several.stdout.split("\n")
    assert float(first.split("\t")[0]) >= float(second.split("\t")[0])
    assert blank == ""


@pytest.mark.parametrize("score", ["rouge-l", "support:word_share"])
def test_other_scores_train_too(score: str, translation_recipe: Path, translation_run: Path, tmp_path: Path):
    short = [f"phases.{phase}.updates=2" for phase in ("critic", "train")]
    short += [f"start.actor={translation_run}", f"score.name={score}"]
    assert main(["train", str(translation_recipe), "--out", str(tmp_path / "run"), *short]) == 0
    assert records(tmp_path / "run")[-1]["valid_score"] >= 0


def test_a_score_of_one_s_own_is_printed_with_its_decimals_and_beside_every_example(
    translation_recipe: Path, translation_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    short = ["phases.train.updates=1", "method.name=reinforce", f"start.actor={translation_run}"]
    out = tmp_path / "run"
    assert main(["train", str(translation_recipe), "--out", str(out), *short, "score.name=support:word_share"]) == 0
    assert main(["evaluate", str(out)]) == 0
    printed = capsys.readouterr().out
    assert re.match(r"support:word_share 0\.\d{4,}  \(95 % interval 0\.\d{4,} to [01]\.\d{4,}\)\n", printed)
    assert main(["report", str(out), "--out", str(tmp_path / "page.html"), "--out", str(tmp_path / "page.json")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    examples = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))["examples"]
    for example in examples:
        ((label, score),) = example["scores"].items()
        assert float(score) == pytest.approx(word_share(example["predictions"][label], example["reference"]), abs=1e-4)
    assert page.count('class="own-score"') == len(examples) > 1


def test_a_missing_function_is_refused(translation_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code = main(["train", str(translation_recipe), "--out", str(tmp_path / "run"), "score.name=support:word_shape"])
    assert code == 2
    assert "did you mean 'word_share'" in capsys.readouterr().err
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_another_task_is_named(translation_recipe: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["validate", str(translation_recipe), "data.task=summary"]) == 2
    assert "data.task: unknown task 'summary'; known: spelling, translation" in capsys.readouterr().err
    assert main(["validate", str(translation_recipe), "data.maximum_lenght=9"]) == 2
    assert "did you mean 'data.maximum_length'" in capsys.readouterr().err


@pytest.mark.parametrize("origin", ["run", "exported"])
def test_fine_tuning_on_new_text_keeps_the_vocabularies(origin: str, translation_run: Path, tmp_path: Path):
    place = export(translation_run, tmp_path / "model") if origin == "exported" else translation_run
    new = tmp_path / "new.tsv"
    new.write_text("hund hund\tdog dog\nkatze nilpferd\tcat hippo\n" * 20, encoding="utf-8")
    text = [f"data.{split}={{pairs: {new}}}" for split in ("train", "valid", "test")]
    short = [
        "score.name=token-error-rate",
        "method.name=likelihood",
        "phases.train.updates=40",
        "phases.train.learning_rate=0.01",
    ]
    out = tmp_path / "tuned"
    command = ["train", str(place), f"start.actor={place}", *text, *short]
    assert main([*command, "--out", str(out)]) == 0
    tuned, before = load_model(out), load_model(translation_run)
    assert tuned.codec.reads_like(before.codec)
    assert "hippo" not in tuned.codec.to_dict()["target"]["words"]
    assert tuned.predict(["hund hund"]) == ["dog dog"] != before.predict(["hund hund"])
    assert {record["phase"] for record in records(out)} == {"train"}
    if origin == "exported":  # the run goes on by itself when what it began from is gone
        for checkpoint in sorted((out / "checkpoints").iterdir()):
            description = checkpoint / "description.json"
            changed = unseal(json.loads(description.read_text()), required=True)
            changed["progress"]["finished"] = False
            description.write_text(json.dumps(seal(changed)))
        shutil.rmtree(out / "model")
        shutil.rmtree(place)
        assert main(["train", str(out / "config.yaml"), "--out", str(out)]) == 0
        assert load_model(out).predict(["hund hund"]) == ["dog dog"]


def test_an_actor_of_other_sizes_is_told_with_the_settings_to_give(
    translation_recipe: Path, translation_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = [f"start.actor={translation_run}", "actor.hidden=8"]
    assert main(["train", str(translation_recipe), "--out", str(tmp_path / "run"), *other]) == 2
    assert "does not fit the network" in (said := capsys.readouterr().err)
    assert "; set actor.hidden=16" in said


def test_an_actor_of_another_task_is_refused(
    translation_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = ["start.actor=spelling-paper"]
    assert main(["train", str(translation_recipe), "--out", str(tmp_path / "run"), *other]) == 2
    assert "spelling-paper was trained with other vocabularies" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("function", "code", "told"),
    [
        ("raises", 2, "score.name: score function faulty_scores:raises failed on prediction ''"),
        ("endless", 2, "score.name: score function faulty_scores:endless returned nan on prediction"),
        ("backwards", 2, "score.name: score function faulty_scores:backwards gives the reference"),
        ("late", 3, "returned nan on prediction"),
    ],
)
def test_a_faulty_function_ends_the_training_with_one_line(
    function: str,
    code: int,
    told: str,
    translation_recipe: Path,
    translation_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    (tmp_path / "faulty_scores.py").write_text(
        "def raises(prediction, reference):\n    return 1 / len(prediction)\n\n\n"
        "def endless(prediction, reference):\n    return float('nan') if prediction else 0.0\n\n\n"
        "def backwards(prediction, reference):\n    return float(prediction != reference)\n\n\n"
        "def late(prediction, reference):\n    return 0.0 if reference.startswith(prediction) else float('nan')\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    given = [f"start.actor={translation_run}", f"score.name=faulty_scores:{function}"]
    assert main(["train", str(translation_recipe), "--out", "run", *given]) == code
    assert told in complaints(capsys.readouterr().err)[0]
    if code == 2:  # before the first update, by every command that leads to it
        assert not (tmp_path / "run" / "metrics.jsonl").exists()
        assert main(["validate", str(translation_recipe), f"score.name=faulty_scores:{function}"]) == 2
        assert told in complaints(capsys.readouterr().err)[0]
        assert main(["compare", str(translation_recipe), "--out", "all", f"score.name=faulty_scores:{function}"]) == 2
        assert told in complaints(capsys.readouterr().err)[0]
        assert not (tmp_path / "all").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--rho", "0.5"], "--rho: greedy search has no length reward"),
        (["--refill"], "--refill: greedy search has no beam to fill"),
        (["--mbr", "4", "--beam", "2"], "--mbr: samples are drawn, not searched for; leave out --beam"),
        (["--mbr", "4", "--refill"], "--mbr: samples are drawn, not searched for; leave out --refill"),
        (["--mbr", "4", "--tune-rho"], "--mbr: samples are drawn, not searched for; leave out --tune-rho"),
        (["--utility", "chrf"], "--utility: what samples are compared by; give --mbr"),
        (["--mbr", "4", "--utility", "blue"], "utility: unknown score 'blue' (did you mean 'bleu'?)"),
        (["--mbr", "4", "--utility", "json:nothing"], "utility: 'json:nothing': module 'json' has no 'nothing'"),
        (["--rho", "nan", "--beam", "2"], "--rho: nan is not a finite number"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(
    options: list[str], told: str, translation_run: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["evaluate", str(translation_run), *options]) == 2
    (line,) = complaints(capsys.readouterr().err)
    assert told in line


def test_evaluate_by_minimum_bayes_risk(translation_run: Path, capsys: pytest.CaptureFixture[str]):
    told = []
    for options in ([], [], ["--utility", "chrf"]):
        assert main(["evaluate", str(translation_run), "--mbr", "6", "--json", *options]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1], "samples are seeded"
    assert told[0]["mbr"] == 6
    assert "|search:mbr:6|utility:sentence-bleu+1:words|seed:1|" in told[0]["signature"]
    assert "|search:mbr:6|utility:length*sentence-chrf:words|" in told[2]["signature"]


def test_several_runs_are_an_ensemble(
    translation_recipe: Path, translation_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other, short = tmp_path / "other", ["method.name=likelihood", "method.likelihood_weight=0", "seed=7"]
    short += ["phases.actor.updates=40", "phases.train.updates=5"]
    assert main(["train", str(translation_recipe), "--out", str(other), *short]) == 0
    lines = ["eins zwei drei.", "hund katze hund.", "vier vier eins zwei katze."]
    both, alone = load_model([translation_run, other]), load_model(translation_run)
    sources, mask = alone.codec.encode_sources(lines)
    tokens = torch.tensor([[5, 6, 7]] * 3)
    with torch.no_grad():
        mean, first, second = (
            torch.softmax(actor.score(actor.encode(sources, mask), tokens)[0], dim=2)
            for actor in (both.actor, alone.actor, load_model(other).actor)
        )
    assert torch.allclose(mean, (first + second) / 2, atol=1e-6)
    result = run("predict", str(translation_run), "--with", str(other), input="".join(f"{line}\n" for line in lines))
    assert result.stdout.splitlines() == both.predict(lines)
    capsys.readouterr()
    assert main(["evaluate", str(translation_run), "--with", str(other), "--beam", "2", "--json"]) == 0
    assert "|search:beam:2|rho:0|ensemble:2|" in json.loads(capsys.readouterr().out)["signature"]
    assert load_model([translation_run]).predict(lines) == alone.predict(lines)
    assert main(["evaluate", str(translation_run), "--with", "spelling-paper"]) == 2
    (line,) = complaints(capsys.readouterr().err)
    assert "spelling-paper: reads or writes other tokens than" in line


def test_predict_by_minimum_bayes_risk_and_no_longer_than_asked(translation_run: Path):
    lines = ["eins zwei.", "hund.", "katze vier drei."]
    model = load_model(translation_run)
    expected = model.predict(lines, MinimumBayesRisk(9))
    result = run("predict", str(translation_run), "--mbr", "9", input="".join(f"{line}\n" for line in lines))
    assert result.stdout.splitlines() == expected
    # Compared by the length of what is written alone, the longest sample wins.
    longest = model.predict(lines, MinimumBayesRisk(9, as_score(lambda prediction, reference: len(prediction))))
    assert all(len(ours) >= len(theirs) for ours, theirs in zip(longest, expected, strict=True))
    assert model.predict([lines[1]], MinimumBayesRisk(9)) == [expected[1]]
    short = run("predict", str(translation_run), "--max-length", "1", input="eins zwei drei.\n")
    assert len(short.stdout.split()) == 1
    refused = run("predict", str(translation_run), "--mbr", "9", "--nbest", "2", input="")
    assert "--nbest: --mbr chooses one prediction" in refused.stderr
