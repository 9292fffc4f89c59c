"""Checks of the cache of encoded pairs: reuse, rebuilding, damage, and several processes at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from seqcritic.data import token_cache
from seqcritic.data.parallel import Pair
from seqcritic.data.token_cache import EncodedPairs, PairFilter, encoded_pairs, file_signature, open_folder
from seqcritic.data.tokens import WordVocabulary
from seqcritic.errors import UserError

VOCABULARY = WordVocabulary("whitespace", False, ["a", "b", "c"])
PAIRS = [
    Pair("a b", "b", "x.en", 1),
    Pair("", "b", "x.en", 2),
    Pair("a b c a", "b", "x.en", 3),
    Pair("a a a", "c", "x.en", 4),
    Pair("c d", "a b c", "x.en", 5),
    Pair("a", " ", "x.en", 6),
]
FILTER = PairFilter(3, 2.5)


def build(
    cache: Path,
    files: list[dict[str, object]] | None = None,
    pairs: Iterable[Pair] = PAIRS,
    vocabulary: WordVocabulary = VOCABULARY,
    pair_filter: PairFilter = FILTER,
) -> EncodedPairs:
    return encoded_pairs(cache, files or [{"name": "x"}], (vocabulary, VOCABULARY), pair_filter, lambda: pairs)


def refuse_to_read() -> Iterator[Pair]:
    raise AssertionError("the cache was not used")
    yield


def content(pairs: EncodedPairs) -> list[tuple[list[int], list[int]]]:
    every = np.arange(len(pairs), dtype=np.int32)
    sides = [side.take(every) for side in (pairs.source, pairs.target)]
    split = [np.split(side.tokens, np.cumsum(side.lengths)[:-1]) for side in sides]
    return [(source.tolist(), target.tolist()) for source, target in zip(*split, strict=True)]


def only_folder(cache: Path) -> Path:
    (folder,) = cache.iterdir()
    return folder


def test_pairs_are_encoded_filtered_and_counted(tmp_path: Path) -> None:
    pairs = build(tmp_path)
    assert content(pairs) == [([2, 3], [3]), ([4, 1], [2, 3, 4])]
    assert pairs.num_read == 6
    assert pairs.skipped == {
        "with an empty side": 2,
        "longer than 3 tokens": 1,
        "with a length ratio above 2.5": 1,
    }


def test_filter_keeps_what_is_just_allowed() -> None:
    assert PairFilter(4, 2.0).reason(4, 2) is None
    assert PairFilter(4, 2.0).reason(2, 4) is None
    assert PairFilter(4, 2.0).reason(1, 3) == "with a length ratio above 2"
    assert PairFilter(4, None).reason(1, 4) is None
    assert PairFilter(4, None).reason(5, 0) == "with an empty side"


def test_second_call_reads_the_cache(tmp_path: Path) -> None:
    first = build(tmp_path / "new" / "cache")
    again = build(tmp_path / "new" / "cache", pairs=refuse_to_read())
    assert content(again) == content(first)
    assert (again.num_read, again.skipped, again.text_digest) == (first.num_read, first.skipped, first.text_digest)


def test_other_files_vocabulary_or_filter_have_a_cache_of_their_own(tmp_path: Path) -> None:
    build(tmp_path)
    build(tmp_path, files=[{"name": "y"}])
    build(tmp_path, vocabulary=WordVocabulary("whitespace", True, ["a", "b", "c"]))
    build(tmp_path, pair_filter=PairFilter(3, None))
    build(tmp_path, pair_filter=PairFilter(4, 2.5))
    assert len(list(tmp_path.iterdir())) == 5


def test_chunks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = build(tmp_path / "whole")
    for name, value in (("CHUNK_PAIRS", 1), ("CHUNK_CHARACTERS", 4)):
        with monkeypatch.context() as patch:
            patch.setattr(token_cache, name, value)
            cut = build(tmp_path / name)
        assert content(cut) == content(whole)
        assert cut.text_digest == whole.text_digest


def test_digest_is_of_the_text_not_of_the_ids(tmp_path: Path) -> None:
    other = [*PAIRS[:4], Pair("c e", "a b c", "x.en", 5)]
    assert build(tmp_path / "1").text_digest != build(tmp_path / "2", pairs=other).text_digest
    moved = [pair._replace(path="y.en", line=9) for pair in PAIRS]
    assert build(tmp_path / "1").text_digest == build(tmp_path / "3", pairs=moved).text_digest


def test_large_vocabularies_have_wider_ids(tmp_path: Path) -> None:
    vocabulary = WordVocabulary("whitespace", False, [str(number) for number in range(70_000)])
    pairs = build(tmp_path, pairs=[Pair("69999 3", "a", "x.en", 1)], vocabulary=vocabulary)
    assert content(pairs) == [([70_001, 5], [2])]


@pytest.mark.parametrize("name", [*token_cache.ARRAYS, token_cache.DESCRIPTION])
@pytest.mark.parametrize("damage", ["missing", "truncated", "overwritten", "empty"])
def test_damaged_cache_is_made_again(tmp_path: Path, name: str, damage: str) -> None:
    expected = content(build(tmp_path))
    path = only_folder(tmp_path) / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"truncated": data[:-1], "overwritten": b"\xff" * len(data), "empty": b""}[damage])
    assert open_folder(path.parent) is None
    assert content(build(tmp_path)) == expected
    assert content(build(tmp_path, pairs=refuse_to_read())) == expected
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("field", ["num_read", "skipped", "text_digest"])
def test_a_description_with_one_letter_changed_counts_as_none(tmp_path: Path, field: str) -> None:
    expected = content(build(tmp_path))
    path = only_folder(tmp_path) / token_cache.DESCRIPTION
    path.write_text(path.read_text(encoding="utf-8").replace(field, f"{field[:-1]}_"), encoding="utf-8")
    assert open_folder(path.parent) is None
    assert content(build(tmp_path)) == expected


def test_breaking_off_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken() -> Iterator[Pair]:
        yield PAIRS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, pairs=broken())
    assert list(tmp_path.iterdir()) == []


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    old, new = tmp_path / "pairs-1-x.tmp", tmp_path / "pairs-1-y.tmp"
    for folder in (old, new):
        folder.mkdir()
        (folder / "source.tokens").write_bytes(b"12")
    long_ago = time.time() - 2 * token_cache.ABANDONED_SECONDS
    for path in (old, old / "source.tokens", new):
        os.utime(path, (long_ago, long_ago))
    build(tmp_path)
    assert not old.exists()
    assert new.exists()


def test_nothing_left_to_train_on(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no pair is left to train on: 1 longer than 3 tokens, 1 with an empty side"):
        build(tmp_path, pairs=[PAIRS[2], PAIRS[1]])
    assert list(tmp_path.iterdir()) == []


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write the cache .*: Not a directory; set SEQCRITIC_CACHE"):
        build(tmp_path / "file" / "cache")


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(token_cache.PackedRowsWriter, "add", fail)
    with pytest.raises(UserError, match=f"cannot write the cache {tmp_path}: No space left on device"):
        build(tmp_path)
    assert list(tmp_path.iterdir()) == []


def build_in_process(cache: Path, barrier: multiprocessing.synchronize.Barrier) -> None:
    def pairs() -> Iterator[Pair]:
        barrier.wait(60)
        yield from PAIRS
        barrier.wait(60)

    assert content(build(cache, pairs=pairs())) == [([2, 3], [3]), ([4, 1], [2, 3, 4])]


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_that_encode_at_the_same_time(tmp_path: Path, damaged: bool) -> None:
    if damaged:
        build(tmp_path)
        (only_folder(tmp_path) / "source.tokens").write_bytes(b"")
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    processes = [context.Process(target=build_in_process, args=(tmp_path, barrier)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    assert content(build(tmp_path, pairs=refuse_to_read())) == [([2, 3], [3]), ([4, 1], [2, 3, 4])]
    assert len(list(tmp_path.iterdir())) == 1


def test_folder_that_another_process_has_finished_first_stays(tmp_path: Path) -> None:
    def pairs() -> Iterator[Pair]:
        yield from PAIRS
        build(tmp_path / "other")
        (tmp_path / "own").mkdir(exist_ok=True)
        theirs = only_folder(tmp_path / "other")
        shutil.move(theirs, tmp_path / "own")
        finished.append((tmp_path / "own" / theirs.name).stat().st_ino)

    finished: list[int] = []
    build(tmp_path / "own", pairs=pairs())
    assert [path.stat().st_ino for path in (tmp_path / "own").iterdir()] == finished


def test_pairs_in_use_survive_the_removal_of_the_cache(tmp_path: Path) -> None:
    pairs = build(tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    assert content(pairs) == [([2, 3], [3]), ([4, 1], [2, 3, 4])]


def test_signature_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 300_000)
    os.utime(path, ns=(1, 1))
    signature = file_signature(path)
    assert json.loads(json.dumps(signature)) == signature
    for place in (0, 299_999):
        data = bytearray(b"x" * 300_000)
        data[place] = 0
        path.write_bytes(data)
        os.utime(path, ns=(1, 1))
        assert file_signature(path) != signature
    path.write_bytes(b"x" * 300_000)
    os.utime(path, ns=(1, 2))
    assert file_signature(path) != signature
