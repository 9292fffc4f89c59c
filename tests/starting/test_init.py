"""`init` on pairs of several kinds: what it sees, what it chooses, and a recipe that trains at once."""

from __future__ import annotations

import json
import random
from itertools import accumulate
from pathlib import Path

import pytest
import yaml

from seqcritic.cli import main
from seqcritic.data.pairs import PairsFromFiles
from seqcritic.data.parallel import Pair
from seqcritic.settings.data import TranslationSettings
from seqcritic.settings.io import load_recipe
from seqcritic.starting.choice import Machine, choose, choose_sizes
from seqcritic.starting.survey import survey_pairs
from seqcritic.training.model import load_model
from support import records

LETTERS = {letter: letter.upper() for letter in "abcdefghijklm"}
LAPTOP = Machine(num_cores=2, has_gpu=False)


def words_and_phonemes(number: int) -> list[tuple[str, str]]:
    """Words of some letters, each letter a sound."""
    draw = random.Random(1)
    words = {"".join(draw.choices(list(LETTERS), k=draw.randint(2, 8))) for _ in range(number)}
    return [(word, " ".join(LETTERS[letter] for letter in word)) for word in sorted(words)]


def sentences(number: int, num_words: int) -> list[tuple[str, str]]:
    """Sentences of words of which the frequent ones are frequent as in language."""
    draw = random.Random(2)
    ranks = range(num_words)
    weights = list(accumulate(1 / (rank + 1) for rank in ranks))
    lines = [draw.choices(ranks, cum_weights=weights, k=draw.randint(4, 9)) for _ in range(number)]
    return [(" ".join(f"q{word}" for word in line), " ".join(f"e{word}" for word in line) + ".") for line in lines]


def write(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def surveyed(pairs: list[tuple[str, str]]):
    return survey_pairs([Pair(source, target, "x", 1) for source, target in pairs], len(pairs), "train")


def test_words_and_phonemes_train_by_two_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pairs, out = write(tmp_path / "words.tsv", words_and_phonemes(600)), tmp_path / "recipe.yaml"
    assert main(["init", str(pairs), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "13 different characters" in told
    assert f"seqcritic train {out}" in told
    settings = load_recipe(out)
    assert settings.data.source_tokens.kind == "characters"
    assert settings.data.target_tokens.kind == "whitespace"
    assert settings.score.name == "edit-distance"
    assert settings.phases.actor.patience is not None
    assert settings.actor.dropout > 0
    small = [f"{part}.{size}=24" for part in ("actor", "critic") for size in ("embedding", "hidden", "attention")]
    small += ["phases.actor.updates=150", "phases.critic.updates=5", "phases.train.updates=5", "actor.dropout=0"]
    rates = ["phases.actor.learning_rate=0.01", "training.evaluate_every=75"]
    assert main(["train", str(out), "--out", str(tmp_path / "run"), *small, *rates]) == 0
    scores = [record["valid_score"] for record in records(tmp_path / "run") if "valid_score" in record]
    assert min(scores) < 60 < scores[0]
    model = load_model(tmp_path / "run")
    valid, test = ({text for text in model.task.evaluation_set(split).sources} for split in ("valid", "test"))
    trained = {source for source, _ in words_and_phonemes(600)} - valid - test
    assert len(valid) > 20
    assert len(test) > 20
    assert not valid & test
    assert len(trained) == model.task.epoch_size


def test_a_held_out_pair_stays_where_it_is_when_pairs_are_added(tmp_path: Path):
    def held_out(pairs: list[tuple[str, str]], name: str) -> set[str]:
        files = {"train": {"pairs": str(write(tmp_path / name, pairs))}, "held_out": {"valid": 0.1}}
        task = PairsFromFiles(TranslationSettings.model_validate(files), cache=tmp_path / "cache")
        return set(task.evaluation_set("valid").sources)

    pairs = words_and_phonemes(500)
    before, after = held_out(pairs[::2], "a.tsv"), held_out(pairs, "b.tsv")
    assert before == after & {source for source, _ in pairs[::2]}
    assert 0.05 < len(after) / len(pairs) < 0.15


def test_the_recipe_is_commented_and_says_where_the_pairs_are(tmp_path: Path):
    source, target = tmp_path / "a.de", tmp_path / "a.en"
    pairs = sentences(400, 50)
    source.write_text("".join(f"{text}\n" for text, _ in pairs))
    target.write_text("".join(f"{text}\n" for _, text in pairs))
    valid = write(tmp_path / "valid.tsv", pairs[:20])
    out = tmp_path / "new" / "two.yaml"
    assert main(["init", str(source), str(target), "--valid", str(valid), "--out", str(out)]) == 0
    text = out.read_text()
    tree = yaml.safe_load(text)
    assert tree["name"] == "two"
    assert tree["data"]["train"] == {"source": [str(source)], "target": [str(target)]}
    assert tree["data"]["valid"] == {"pairs": [str(valid)]}
    assert "held_out" not in tree["data"]
    assert text.count("\n") - len([line for line in text.splitlines() if "#" not in line]) >= 8, "comments"
    assert tree["score"]["name"] == "bleu"


def test_sources_of_valid_that_are_trained_on_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pairs = words_and_phonemes(100)
    train, valid = write(tmp_path / "a.tsv", pairs), write(tmp_path / "b.tsv", [*pairs[:7], ("zz", "Z Z")])
    assert main(["init", str(train), "--valid", str(valid), "--out", str(tmp_path / "r.yaml")]) == 0
    assert "warning: 7 pairs of valid have a source that is trained on" in capsys.readouterr().out


def test_what_is_counted():
    survey = surveyed([("a b", "x"), ("a b", "x"), ("a b", "y"), ("c", "c"), ("", "z"), ("d", " ")])
    assert (survey.num_pairs, survey.num_sources, survey.num_empty) == (6, 2, 2)
    assert (survey.num_repeated, survey.num_with_several, survey.num_equal) == (1, 1, 1)
    assert survey.num_scattered == 1
    assert survey.num_shared([Pair("c", "q", "x", 1), Pair("e", "q", "x", 2)]) == 1


def test_lists_of_targets_are_not_told_to_become_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "pairs.jsonl"
    rows = [{"source": source, "target": [target, f"{target} X"]} for source, target in words_and_phonemes(300)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert main(["init", str(path), "--out", str(tmp_path / "recipe.yaml")]) == 0
    told = capsys.readouterr().out
    assert f"\n{len(rows)} sources have several targets\n" in told


def test_words_where_they_cover_the_text_and_subwords_where_not():
    few, many = (choose(surveyed(sentences(1500, number)), LAPTOP) for number in (60, 60_000))
    assert few.source_tokens.value == {"kind": "whitespace", "size": None}
    assert few.target_tokens.value == {"kind": "words", "size": 1000}
    assert many.source_tokens.value == {"kind": "subwords", "size": 1000}
    assert many.score.value == "bleu"


def test_text_without_spaces_is_read_by_characters():
    draw = random.Random(3)
    lines = ["".join(chr(0x4E00 + draw.randint(0, 400)) for _ in range(20)) for _ in range(300)]
    choice = choose(surveyed([(line, f"{line[::-1]} {line[:9]}") for line in lines]), LAPTOP)
    assert choice.source_tokens.value["kind"] == "characters"
    assert choice.target_tokens.value["kind"] == "characters"


def test_more_text_has_wider_networks_less_dropout_and_fewer_passes():
    sizes = [choose_sizes(number, Machine(8, True)) for number in (20_000, 300_000, 2_000_000)]
    assert [width.value for width, _ in sizes] == sorted({width.value for width, _ in sizes})
    assert [dropout.value for _, dropout in sizes] == sorted((dropout.value for _, dropout in sizes), reverse=True)
    short, long = (choose(surveyed(words_and_phonemes(number)), LAPTOP) for number in (200, 4000))
    assert short.epochs > long.epochs
    assert short.held_out > long.held_out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"one\ntwo\n", "pairs.tsv:1: no tab; each line has to be a source, a tab and its target"),
        (b"a\tb\tc\n", "pairs.tsv:1: 3 columns between tabs; each line has to be a source, a tab and its target"),
        (b"a\tb\rc\td\r", "lines end in CR alone, as on an old Mac; convert them"),
        ("a\tb\nc\td\n".encode("utf-16"), "UTF-16; convert the file"),
        ("a\tb\nc\td\n".encode("utf-16-le"), "UTF-16; convert the file"),
        (b"a\tb\n\nc\td\n", "pairs.tsv:2: an empty line"),
        (b"a\tb\n" * 5, "all pairs have the same source, 'a'; give pairs of different sources"),
        (b"a\ta\nb\tb\n", "pairs.tsv: source and target are the same in all pairs; give what is to be"),
        (b"\t\n\t\n", "pairs.tsv: no pair has both sides; give each source its target"),
        (b"a\tb\nc\td\n", "2 different sources are too few to keep some apart, none is left for "),
        (b"", "is empty"),
    ],
)
def test_bad_pairs_are_told_in_one_line_and_nothing_is_written(
    content: bytes, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    assert main(["init", str(path), "--out", str(tmp_path / "recipe.yaml")]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == [path]


def test_what_is_kept_apart_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    few, many = (write(tmp_path / f"{number}.tsv", words_and_phonemes(number)) for number in (60, 2000))
    assert main(["init", str(few), "--out", str(tmp_path / "few.yaml")]) == 0
    assert "warning: scores on so few pairs as those of" in capsys.readouterr().out
    out = tmp_path / "many.yaml"
    assert main(["init", str(many), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "warning" not in told
    task = PairsFromFiles(load_recipe(out).data, cache=tmp_path / "cache")
    sizes = {split: len(task.evaluation_set(split)) for split in ("valid", "test")}
    assert f"kept apart by a hash of the source: {sizes['valid']} for valid, {sizes['test']} for test" in told


def test_columns_of_other_names_are_read_and_stand_in_the_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, out = tmp_path / "words.csv", tmp_path / "recipe.yaml"
    rows = "".join(f"{source},{target}\n" for source, target in words_and_phonemes(300))
    path.write_text(f"spelt,said\n{rows}", encoding="utf-8")
    assert main(["init", str(path), "--out", str(out)]) == 2
    assert "no field 'source', only spelt, said; name the fields by data.columns.source" in capsys.readouterr().err
    named = ["data.columns.source=spelt", "data.columns.target=said"]
    assert main(["init", str(path), "--valid", str(path), *named, "--out", str(tmp_path / "valid.yaml")]) == 0
    assert main(["init", str(path), "--out", str(out), *named]) == 0
    settings = load_recipe(out)
    assert settings.data.columns.model_dump() == {"source": "spelt", "target": "said"}
    assert settings.data.target_tokens.kind == "whitespace"


def test_a_byte_order_mark_is_no_letter(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "pairs.tsv"
    lines = "".join(f"{source}\t{target}\n" for source, target in words_and_phonemes(200))
    path.write_bytes(lines.encode("utf-8-sig"))
    assert main(["init", str(path), "--out", str(tmp_path / "recipe.yaml")]) == 0
    assert "sources: 13 different characters" in capsys.readouterr().out


def test_a_recipe_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "recipe.yaml"
    out.write_text("mine")
    assert main(["init", str(write(tmp_path / "a.tsv", words_and_phonemes(9))), "--out", str(out)]) == 2
    assert "exists; remove it or give another name" in capsys.readouterr().err
    assert out.read_text() == "mine"
