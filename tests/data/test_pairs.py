"""Checks of the translation task as the trainer, the evaluator and `predict` see it."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from seqcritic.contracts import batch
from seqcritic.contracts.codec import codec_from_dict
from seqcritic.data.pairs import PairsFromFiles
from seqcritic.errors import UserError
from seqcritic.settings.data import TranslationSettings

WORDS = {"cat": "Katze", "dog": "Hund", "house": "Haus", "don't": "nicht", "tree": "Baum", "is": "ist"}


class Task:
    """Small files of all splits, and settings and data for them."""

    def __init__(self, folder: Path, told: list[str]) -> None:
        self.folder, self.told = folder, told
        generator = random.Random(1)
        for split, size in (("train", 300), ("valid", 40), ("test", 30)):
            chosen = [generator.choices(list(WORDS), k=generator.randint(1, 9)) for _ in range(size)]
            self.write(f"{split}.de", [" ".join(WORDS[word] for word in words) + "." for words in chosen])
            self.write(f"{split}.en", [" ".join(words) + "!" for words in chosen])

    def write(self, name: str, lines: list[str]) -> Path:
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def read(self, name: str) -> list[str]:
        return (self.folder / name).read_text(encoding="utf-8").splitlines()

    def settings(self, **changes: Any) -> TranslationSettings:
        files = {
            split: {"source": str(self.folder / f"{split}.de"), "target": str(self.folder / f"{split}.en")}
            for split in ("train", "valid", "test")
        }
        return TranslationSettings.model_validate(files | changes)

    def data(self, **changes: Any) -> PairsFromFiles:
        return PairsFromFiles(self.settings(**changes), self.folder / "cache")


@pytest.fixture
def task(tmp_path: Path, told: list[str]) -> Task:
    return Task(tmp_path, told)


def test_training_batches_hold_the_pairs_of_the_files(task: Task) -> None:
    data = task.data()
    sources, references = [], []
    for number in range(30):
        batch = data.training_batch(10 * number, 10, 1)
        sources += [data.codec.source.decode(row) for row in batch.sources.tolist()]
        references += data.codec.texts(batch.references)
    assert sorted(zip(sources, references, strict=True)) == sorted(
        zip(task.read("train.de"), task.read("train.en"), strict=True)
    )
    assert task.told == [
        "data.source_tokens: 9 tokens in the vocabulary",
        "data.target_tokens: 10 tokens in the vocabulary",
        "data.train: 300 pairs",
    ]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["a\tb"] * 4, "all pairs have the same source, 'a'; give pairs of different sources"),
        (["a\ta", "b\tb"], "source and target are the same in all pairs; give what is to be written as the target"),
    ],
)
def test_pairs_that_teach_nothing_are_refused_before_anything_is_learnt(
    task: Task, lines: list[str], complaint: str
) -> None:
    path = task.write("idle.tsv", lines)
    with pytest.raises(UserError) as caught:
        task.data(train={"pairs": str(path)}).fingerprint()
    assert str(caught.value) == f"data.train: {path}: {complaint}"
    assert task.told == []
    assert not (task.folder / "cache").exists()


def test_a_pair_with_two_equal_sides_among_others_is_kept(task: Task) -> None:
    path = task.write("some.tsv", ["a\ta", "b\tc", "\tx"])
    assert task.data(train={"pairs": str(path)}).training_pairs.num_read == 3


def test_batches_are_closed_by_end_tokens(task: Task) -> None:
    batch = task.data().training_batch(0, 10, 1)
    for tokens, mask in ((batch.sources, batch.source_mask), (batch.references, batch.reference_mask)):
        lengths = mask.sum(dim=1)
        assert bool((tokens.gather(1, lengths[:, None] - 1) == 0).all())
        assert bool((tokens != 0).sum(dim=1).eq(lengths - 1).all())
        assert tokens.shape[1] == int(lengths.max())


def test_left_out_pairs_are_counted_also_when_they_come_from_the_cache(task: Task) -> None:
    task.write("train.de", ["", "Katze", "Katze Hund Haus Baum", "Katze", "Hund"])
    task.write("train.en", ["cat", "cat", "cat", "dog dog dog", "dog"])
    expected = (
        "data.train: 2 pairs, left out 1 with an empty side, 1 longer than 3 tokens, 1 with a length ratio above 2"
    )
    for _ in range(2):
        task.told.clear()
        assert len(task.data(maximum_length=3, maximum_ratio=2).training_pairs) == 2
        assert task.told[-1] == expected


def test_evaluation_set_is_in_the_order_of_the_files(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "EVALUATION_BATCH", 16)
    data = task.data()
    evaluation_set = data.evaluation_set("valid")
    assert evaluation_set.sources == task.read("valid.de")
    assert evaluation_set.references == task.read("valid.en")
    assert [len(batch) for batch in evaluation_set.batches] == [16, 16, 8]
    decoded = [text for batch in evaluation_set.batches for text in data.codec.texts(batch.references)]
    assert decoded == evaluation_set.references


def test_evaluation_batches_of_long_sentences_are_small(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "EVALUATION_POSITIONS", 40)
    task.write("test.de", ["Katze", "Katze", "Katze Hund " * 50, "Hund", "Hund"])
    task.write("test.en", ["cat"] * 5)
    assert [len(batch) for batch in task.data().evaluation_set("test").batches] == [2, 1, 2]


def test_evaluation_keeps_long_pairs_and_empty_sources_and_says_so(task: Task) -> None:
    task.write("test.de", ["Katze Hund Haus Baum", " ", "Hund"])
    task.write("test.en", ["cat", "cat", "dog"])
    evaluation_set = task.data(maximum_length=3).evaluation_set("test")
    assert len(evaluation_set.references) == 3
    assert evaluation_set.batches[0].source_mask.sum(dim=1).tolist() == [5, 1, 2]
    assert task.told[-1] == "data.test: 3 pairs, all kept: 1 with an empty source, 1 longer than 3 tokens"


@pytest.mark.parametrize("split", ["valid", "test"])
def test_empty_reference_is_refused(task: Task, split: str) -> None:
    path = task.write(f"{split}.en", ["cat", " "])
    task.write(f"{split}.de", ["Katze", "Hund"])
    with pytest.raises(UserError, match=f"data.{split}: {path}:2: the reference is empty"):
        task.data().evaluation_set(split)


def test_training_text_can_be_evaluated_without_its_empty_pairs(task: Task) -> None:
    task.write("train.de", ["Katze", "Hund"])
    task.write("train.en", ["cat", ""])
    assert task.data().evaluation_set("train").references == ["cat"]
    assert "data.train: left out 1 with an empty reference" in task.told


def test_limited_evaluation_is_spread_over_the_file(task: Task) -> None:
    lines = task.read("valid.en")
    chosen = task.data(valid_size=3).evaluation_set("valid").references
    assert chosen == [lines[0], lines[20], lines[39]]
    assert len(task.data(test_size=1000).evaluation_set("test").references) == 30


def test_a_training_sample_is_spread_over_the_pairs_that_are_trained_on(task: Task) -> None:
    lines = task.read("train.en")
    assert task.data().training_sample(4).references == [lines[0], lines[100], lines[199], lines[299]]
    long = "tree tree tree tree"
    for side in ("de", "en"):
        task.write(f"train.{side}", ["cat", "dog", long, long, "tree", "house", "is"])
    data = task.data(maximum_length=3)
    # Where a pair is left out the next one is taken, and none is taken twice.
    assert data.training_sample(3).references == ["cat", "tree", "is"]
    assert data.training_sample(4).references == ["cat", "tree", "house", "is"]
    for size in (5, 9):
        assert data.training_sample(size).references == ["cat", "dog", "tree", "house", "is"]
    chosen = data.training_sample(3)
    assert [text for batch in chosen.batches for text in data.codec.texts(batch.references)] == chosen.references
    assert chosen.sources == chosen.references


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_missing_text_is_told(task: Task, split: str) -> None:
    with pytest.raises(UserError, match=f"data.{split}: no text given"):
        task.data(**{split: {}}).evaluation_set(split)


def test_fault_in_the_training_text_leaves_the_cache_empty(task: Task) -> None:
    path = task.write("train.en", ["cat"] * 299)
    with pytest.raises(UserError, match=f"{path}:299 is its last line, but .*train.de goes on at line 300"):
        task.data().training_batch(0, 8, 1)
    assert not (task.folder / "cache").exists()


def test_second_start_reads_no_text(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    first = task.data()
    expected = first.training_batch(40, 8, 1)
    fingerprint = first.fingerprint()

    def refuse(*_: object) -> None:
        raise AssertionError("the training text was read again")

    monkeypatch.setattr(PairsFromFiles, "_read_training", refuse)
    again = task.data()
    assert again.training_batch(40, 8, 1).sources.tolist() == expected.sources.tolist()
    assert again.fingerprint() == fingerprint


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"digest": 1, "source": {}, "target": {}}', "\udcff"])
def test_damaged_vocabularies_are_learnt_again(task: Task, content: str) -> None:
    expected = task.data().codec.to_dict()
    (path,) = (task.folder / "cache").glob("vocabularies-*.json")
    path.write_text(content, errors="surrogateescape")
    assert task.data().codec.to_dict() == expected
    assert json.loads(path.read_text())["source"] == expected["source"]


def test_fingerprint_changes_with_the_text(task: Task) -> None:
    fingerprints = [task.data().fingerprint()]
    for split in ("train", "valid"):
        for side in ("de", "en"):
            lines = task.read(f"{split}.{side}")
            lines[17] += "?"
            task.write(f"{split}.{side}", lines)
            fingerprints.append(task.data().fingerprint())
    fingerprints.append(task.data(source_tokens={"size": 3}).fingerprint())
    fingerprints.append(task.data(maximum_length=5).fingerprint())
    assert len(set(fingerprints)) == len(fingerprints)


def test_fingerprint_changes_with_the_order_alone(task: Task) -> None:
    vocabularies, fingerprint = task.data().codec.to_dict(), task.data().fingerprint()
    for side in ("de", "en"):
        lines = task.read(f"train.{side}")
        task.write(f"train.{side}", [*lines[1:], lines[0]])
    assert task.data().codec.to_dict() == vocabularies
    assert task.data().fingerprint() != fingerprint


def test_fingerprint_does_not_depend_on_place_or_time(task: Task, tmp_path_factory: pytest.TempPathFactory) -> None:
    fingerprint = task.data().fingerprint()
    os.utime(task.folder / "train.de", ns=(1, 1))
    assert task.data().fingerprint() == fingerprint
    assert Task(tmp_path_factory.mktemp("elsewhere"), []).data().fingerprint() == fingerprint
    lines = task.read("test.en")
    task.write("test.en", [*lines[1:], lines[0]])
    assert task.data().fingerprint() == fingerprint


def test_model_predicts_without_the_training_text(task: Task) -> None:
    data = task.data(source_tokens={"lowercase": True})
    stored = json.loads(json.dumps(data.codec.to_dict()))
    lines = ["Katze, Hund!", "", "etwas Neues"]
    tokens, mask = data.codec.encode_sources(lines)
    (task.folder / "train.de").unlink()
    loaded = PairsFromFiles(task.settings(source_tokens={"lowercase": True}), codec=codec_from_dict(stored))
    assert loaded.codec.encode_sources(lines)[0].tolist() == tokens.tolist()
    assert mask.sum(dim=1).tolist() == [5, 1, 3]
    predicted = torch.tensor([data.codec.target.encode("cat don't!")])
    assert loaded.codec.texts(predicted) == ["cat don't!"]
    assert len(loaded.evaluation_set("test").references) == 30


def test_stored_vocabularies_can_encode_other_training_text(task: Task) -> None:
    stored = task.data().codec.to_dict()
    task.write("train.de", ["Fisch ist Katze."])
    task.write("train.en", ["fish is cat!"])
    data = PairsFromFiles(task.settings(), cache=task.folder / "cache", codec=codec_from_dict(stored))
    assert data.codec.texts(data.training_batch(0, 4, 1).references) == ["⁇ is cat!"]


@pytest.mark.parametrize("kind", ["whitespace", "words", "subwords"])
def test_text_for_scores_of_tokenised_text(task: Task, kind: str) -> None:
    data = task.data(target_tokens={"kind": kind, "size": 300, "lowercase": True})
    line = "The cat don't!"
    expected = "cat don't!" if kind == "whitespace" else "cat don 't !"
    assert data.codec.tokenised_lines([line]) == [f"the {expected}"]


@pytest.mark.parametrize("kind", ["whitespace", "words", "subwords"])
def test_batches_know_the_raw_references_of_their_examples(task: Task, kind: str) -> None:
    lines = task.read("train.en")
    task.write("train.en", [f"{line}  Rare{number} UNK ⁇" for number, line in enumerate(lines)])
    sizes = {"subwords": 300}
    data = task.data(target_tokens={"kind": kind, "size": sizes.get(kind, 5), "lowercase": True})
    expected = {f"{line}  Rare{number} UNK ??" for number, line in enumerate(lines)}
    seen = []
    for position in range(0, 300, 32):
        batch = data.training_batch(position, 32, seed=1)
        texts = batch.texts.references()
        seen += [text for (text,) in texts]
        encoded = data.codec.target.encode_all([text for (text,) in texts])
        rows = zip(batch.references.tolist(), batch.reference_mask.sum(dim=1).tolist(), strict=True)
        assert encoded == [row[: length - 1] for row, length in rows], "each text belongs to its numbers"
        assert batch.part(3, 9).texts.references() == texts[3:9]
        assert batch.repeat(2).texts.references() == [text for text in texts for _ in range(2)]
        assert batch.select(torch.tensor([5, 0, 5])).texts.references() == [texts[5], texts[0], texts[5]]
        assert batch.to(torch.device("cpu")).texts.references() == texts
    assert sorted(seen) == sorted(expected)
    test = data.evaluation_set("test")
    assert [text for batch in test.batches for (text,) in batch.texts.references()] == test.references


def test_raw_references_are_stored_only_for_a_score_that_asks(task: Task) -> None:
    batch = task.data().training_batch(0, 4, 1)
    assert not list((task.folder / "cache").glob("*-texts"))
    texts = batch.texts.references()
    (stored,) = (task.folder / "cache").glob("*-texts")
    assert task.data().training_batch(0, 4, 1).texts.references() == texts
    (stored / "pairs.text.offsets").write_bytes(b"damaged")
    assert task.data().training_batch(0, 4, 1).texts.references() == texts, "what is damaged is made again"
