"""A task made of pairs that are at hand: what may be passed, what is held out, and what is refused in one line."""

from __future__ import annotations

import json
from collections import UserList
from pathlib import Path
from typing import Any

import pytest
import torch

import seqcritic
from seqcritic.data.pairs import PairsFromFiles, PairsTask
from seqcritic.data.pairs_in_memory import hold_out, read_given
from seqcritic.data.parallel import Pair
from seqcritic.errors import UserError
from seqcritic.settings.data import TranslationSettings

WORDS = ["one", "two", "three", "four", "five"]
PAIRS = [(f"{a} {b}", f"{b} {a}") for a in WORDS for b in WORDS]


class Rows(torch.utils.data.Dataset[Any]):
    """A map-style dataset that never raises IndexError: its length alone says where it ends."""

    def __len__(self) -> int:
        return len(PAIRS)

    def __getitem__(self, index: int) -> Any:
        return PAIRS[index % len(PAIRS)]


class Frame:
    """What of a pandas frame is asked for; its own iteration gives column names."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        return [row[column] for row in self.rows]

    def itertuples(self) -> None:
        raise NotImplementedError

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self.rows


FORMS: dict[str, tuple[Any, dict[str, str]]] = {
    "lists": ([list(pair) for pair in PAIRS], {}),
    "one reference in a list": ([(source, [target]) for source, target in PAIRS], {}),
    "dictionaries": ([{"source": source, "target": target} for source, target in PAIRS], {}),
    "other fields": ([{"q": source, "a": target} for source, target in PAIRS], {"source": "q", "target": "a"}),
    "fields of a field": (
        UserList({"id": 1, "translation": {"de": source, "en": target}} for source, target in PAIRS),
        {"source": "translation.de", "target": "translation.en"},
    ),
    "dataset": (Rows(), {}),
    "frame": (Frame([{"q": source, "a": target} for source, target in PAIRS]), {"source": "q", "target": "a"}),
    "generator": ((pair for pair in PAIRS), {}),
}


@pytest.mark.parametrize(("given", "fields"), FORMS.values(), ids=FORMS)
def test_whatever_has_rows_makes_the_same_task(given: Any, fields: dict[str, str]):
    found, expected = seqcritic.pairs(given, PAIRS[:3], **fields), seqcritic.pairs(PAIRS, PAIRS[:3])
    assert found.fingerprint() == expected.fingerprint()
    assert torch.equal(found.training_batch(4, 4, 1).references, expected.training_batch(4, 4, 1).references)


def test_in_memory_and_from_files_the_same_pairs_are_the_same_task(tmp_path: Path):
    several = [(source, [target, f"{target} indeed"]) for source, target in PAIRS]
    path = tmp_path / "pairs.jsonl"
    records = ({"source": source, "target": targets} for source, targets in several)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    tokens = {"source_tokens": {"kind": "whitespace", "size": 4}, "maximum_length": 3}
    files = {split: {"pairs": str(path)} for split in ("train", "valid", "test")}
    stored = PairsFromFiles(TranslationSettings.model_validate(files | tokens), cache=tmp_path / "cache")
    found = seqcritic.pairs(several, several, several, **tokens)  # type: ignore[arg-type]
    assert found.codec.to_dict() == stored.codec.to_dict()
    assert found.fingerprint() == stored.fingerprint()
    assert found.conditions("test") == stored.conditions("test")
    for position in (0, 7, 700):
        ours, theirs = found.training_batch(position, 7, 3), stored.training_batch(position, 7, 3)
        assert torch.equal(ours.sources, theirs.sources)
        assert ours.texts is not None
        assert theirs.texts is not None
        assert ours.texts.references() == theirs.texts.references()
        lengths = (ours.reference_mask.sum(dim=1) - 1).long()
        assert torch.equal(ours.all_references(lengths)[0], theirs.all_references(lengths)[0])
    assert found.training_sample(4).sources == stored.training_sample(4).sources
    assert found.evaluation_set("valid").all_references == stored.evaluation_set("valid").all_references


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path / "cache"))
    task = seqcritic.pairs(PAIRS)
    task.training_batch(0, 4, 1)
    task.fingerprint()
    assert not (tmp_path / "cache").exists()


def test_the_filter_and_the_sizes_are_those_of_recipes(told: list[str]):
    long = [("one " * 9, "two"), ("", "two"), ("one", " ")]
    task = seqcritic.pairs([*PAIRS, *long], PAIRS, PAIRS, maximum_length=5, valid_size=4, test_size=5)
    assert len(task.evaluation_set("valid")) == 4
    assert len(task.evaluation_set("test")) == 5
    task.training_batch(0, 4, 1)
    assert "train: 25 pairs, left out 1 longer than 5 tokens, 2 with an empty side" in told
    assert "source_tokens: 7 tokens in the vocabulary" in told


def test_text_is_cleaned_as_that_of_files():
    (pair,) = read_given([("a\nb", ["⁇", "c\r\nd"])], "train", ("source", "target"))
    assert (pair.source, pair.targets) == ("a b", ("??", "c  d"))


def test_another_models_codec_is_taken():
    codec = seqcritic.pairs([("six", "SEVEN"), ("a", "b")], target_tokens={"lowercase": True}).codec
    task = seqcritic.pairs(PAIRS, codec=codec)  # type: ignore[arg-type]
    assert task.codec is codec
    assert set(task.training_batch(0, 9, 1).references.flatten().tolist()) == {0, 1}
    assert "tokens:words:lowercase" in task.conditions("valid")
    with pytest.raises(UserError, match="give either codec, or source_tokens"):
        seqcritic.pairs(PAIRS, codec=codec, source_tokens={})  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "expected"), [(2, 1), (20, 1), (100, 5), (1000, 50), (30_000, 1000)])
def test_five_percent_are_held_out_at_least_one_and_at_most_a_thousand(size: int, expected: int):
    given = [Pair(f"{number}", "x", "train", number) for number in range(size)]
    train, valid = hold_out(given)
    assert len(valid) == expected
    assert sorted([*train, *valid], key=lambda pair: pair.line) == given


def test_a_source_stays_on_one_side_whatever_the_order():
    given = [Pair(f"{number % 40}", f"{number}", "train", number) for number in range(400)]
    train, valid = hold_out(given)
    assert len(valid) == 20
    sides = [{pair.source for pair in side} for side in (train, valid)]
    assert sides[0].isdisjoint(sides[1])
    assert [{pair.source for pair in side} for side in hold_out(given[::-1])] == sides
    more = [*given, *(Pair(f"new {number}", "x", "train", number) for number in range(20))]
    assert len({pair.source for pair in hold_out(more)[1]} & sides[1]) >= 1, "added pairs move few of the others"


def test_where_every_source_is_frequent_the_rarest_is_held_out():
    given = [Pair("ab"[number > 5], "x", "train", number) for number in range(10)]
    train, valid = hold_out(given)
    assert {pair.source for pair in valid} == {"b"}
    assert len(train) == 6


def test_an_empty_reference_is_never_held_out():
    given = [Pair(f"{number}", "x" if number % 10 == 0 else " ", "train", number) for number in range(200)]
    assert all(pair.target == "x" for pair in hold_out(given)[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": []}, "train: no pairs; give at least one (source, target)"),
        ({"train": iter(())}, "train: no pairs; give at least one (source, target)"),
        ({"valid": []}, "valid: no pairs; give at least one (source, target)"),
        ({"train": "a.txt"}, "train: a text where a list of pairs should be; files are for recipes, data.train"),
        ({"train": {"train": PAIRS}}, "train: a mapping where a list of pairs should be; pass one of its values"),
        ({"train": set(PAIRS)}, "train: a set has no order, and results would change; pass a list"),
        ({"train": 3}, "train: int, not a list of pairs"),
        (
            {"train": ["ab", "cd"]},
            "train[0]: 'ab' is no pair; give (source, target), or (source, [several targets])",
        ),
        ({"valid": [("a", "b"), ("a", "b", "c")]}, "valid[1]: 3 entries, not the two of source and target; several "),
        ({"train": [("a", 3)]}, "train[0]: the target is int, not text"),
        ({"train": [(None, "b")]}, "train[0]: the source is NoneType, not text"),
        ({"train": [("a", ["b", 2.5])]}, "train[0]: the target is float, not text"),
        ({"train": [("a", [])]}, "train[0]: no target; give at least one"),
        ({"train": [("a", "\ud800")]}, "train[0]: the target is text with half a surrogate pair, not text"),
        ({"train": [{"src": "a"}]}, "train[0]: no field 'source', only src; name the fields by source=… and target=…"),
        ({"train": [("a", "b")] * 9}, "valid: no pairs given, and none of train can be held out; pass valid=…"),
        (
            {"source_tokens": {"kind": "letters"}},
            "source_tokens.kind: input should be 'whitespace', 'words', 'subwords', 'characters' or",
        ),
        (
            {"target_tokens": {"siz": 3}},
            "target_tokens.siz: unknown; known: kind, file, lowercase, size, minimum_count",
        ),
        ({"target_tokens": {"kind": "subwords", "size": 9}}, "target_tokens.size: subwords need a size of at least"),
        ({"target_tokens": 3}, "target_tokens: input should be a valid dictionary"),
        ({"maximum_length": 0}, "maximum_length: input should be greater than or equal to 1, not 0"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(arguments: dict[str, Any], message: str):
    with pytest.raises(UserError) as told:
        seqcritic.pairs(**{"train": PAIRS, **arguments})
    assert str(told.value).startswith(message)
    assert "\n" not in str(told.value)


def test_splits_are_evaluated_only_if_they_can_be():
    task = seqcritic.pairs(PAIRS, [("a", "b"), ("c", ["d", " "])])
    with pytest.raises(UserError, match=r"^valid\[1\]: the reference is empty; remove the pair$"):
        task.evaluation_set("valid")
    with pytest.raises(UserError, match=r"^test: no pairs given; pass test=… to seqcritic\.pairs$"):
        task.evaluation_set("test")
    with pytest.raises(UserError, match=r"^train: no pair is left to train on: 25 longer than 1 tokens"):
        seqcritic.pairs(PAIRS, maximum_length=1, valid=PAIRS).training_batch(0, 1, 1)


def test_it_is_a_task_of_pairs():
    assert isinstance(seqcritic.pairs(PAIRS), PairsTask)
