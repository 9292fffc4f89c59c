"""Checks of the order of training: every pair once an epoch, like lengths together, the same however reached."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqcritic.contracts.batch import Batch
from seqcritic.data.bucketing import BATCHES_IN_WINDOW, Buckets, EpochPosition
from seqcritic.data.parallel import Pair
from seqcritic.data.token_cache import EncodedPairs, PairFilter, encoded_pairs
from seqcritic.data.tokens import WordVocabulary
from seqcritic.errors import UserError

NUM_PAIRS = 7_003
NUM_TOKENS = 10_002
VOCABULARY = WordVocabulary("whitespace", False, [str(number) for number in range(NUM_TOKENS - 2)])


def encode(cache: Path, num_pairs: int) -> EncodedPairs:
    """Pairs of many lengths whose first tokens are their number, on both sides."""
    generator = np.random.default_rng(1)
    lengths = np.clip(generator.normal(20, 8, num_pairs).round(), 1, 40).astype(int)
    others = np.clip(lengths + generator.normal(0, 3, num_pairs).round(), 1, 45).astype(int)
    pairs = [
        Pair(" ".join([str(number)] * length), " ".join([str(number)] * other), "x", number)
        for number, (length, other) in enumerate(zip(lengths, others, strict=True))
    ]
    files = [{"num_pairs": num_pairs}]
    return encoded_pairs(cache, files, (VOCABULARY, VOCABULARY), PairFilter(50, None), lambda: pairs)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> EncodedPairs:
    return encode(tmp_path_factory.mktemp("cache"), NUM_PAIRS)


def fresh(pairs: EncodedPairs) -> Buckets:
    return Buckets(pairs, (NUM_TOKENS, NUM_TOKENS))


def members(batch: Batch) -> list[int]:
    assert batch.sources[:, 0].tolist() == batch.references[:, 0].tolist()
    return [number - 2 for number in batch.sources[:, 0].tolist()]


def assert_equal(ours: Batch, theirs: Batch) -> None:
    for name in ("sources", "source_mask", "references", "reference_mask"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()


@pytest.mark.parametrize("size", [1, 7, 32, 64, 7_002, 7_003, 7_004, 100_000])
def test_every_pair_once_an_epoch_in_batches_of_nearly_the_same_size(pairs: EncodedPairs, size: int) -> None:
    buckets = fresh(pairs)
    num_batches = buckets.num_batches(size)
    assert num_batches == int(np.ceil(NUM_PAIRS / size))
    if size == 1:
        num_batches = 2 * BATCHES_IN_WINDOW
    batches = [members(buckets.batch(number * size, size, 3)) for number in range(num_batches)]
    seen = [pair for batch in batches for pair in batch]
    assert len(set(seen)) == len(seen)
    if size > 1:
        assert sorted(seen) == list(range(NUM_PAIRS))
    sizes = {len(batch) for batch in batches}
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1


def test_epochs_and_seeds_differ(pairs: EncodedPairs) -> None:
    buckets, size = fresh(pairs), 64
    num_batches = buckets.num_batches(size)
    first, second = ([members(buckets.batch((e * num_batches + k) * size, size, 3)) for k in range(4)] for e in (0, 1))
    assert first != second
    assert members(buckets.batch(0, size, 4)) != first[0]
    whole = [members(buckets.batch((num_batches + k) * size, size, 3)) for k in range(num_batches)]
    assert sorted(pair for batch in whole for pair in batch) == list(range(NUM_PAIRS))


def test_position_counts_every_batch_as_full(pairs: EncodedPairs) -> None:
    buckets = fresh(pairs)
    assert buckets.num_batches(64) == 110
    assert buckets.locate(0, 64) == EpochPosition(0, 0)
    assert buckets.locate(64 * 109, 64) == EpochPosition(0, 109)
    assert buckets.locate(64 * 110, 64) == EpochPosition(1, 0)
    assert buckets.locate(64 * 325, 64) == EpochPosition(2, 105)
    # A position that another batch size has left: the batch it lies in.
    assert buckets.locate(64 * 110 + 63, 64) == EpochPosition(1, 0)


def test_batch_is_the_same_however_it_is_reached(pairs: EncodedPairs) -> None:
    size, one_after_another = 32, fresh(pairs)
    stream = [one_after_another.batch(number * size, size, 5) for number in range(450)]
    for number in (449, 0, 99, 100, 218, 219, 220, 319):
        assert_equal(fresh(pairs).batch(number * size, size, 5), stream[number])
    jumping = fresh(pairs)
    for number in (300, 2, 301, 3, 110):
        assert_equal(jumping.batch(number * size, size, 5), stream[number])


def test_first_batches_of_a_seed_do_not_change(pairs: EncodedPairs) -> None:
    """A run that is resumed by a later version must go on with the same order."""
    buckets = fresh(pairs)
    assert buckets.order(1, 0)[:4].tolist() == [6697, 334, 2975, 5239]
    assert members(buckets.batch(0, 4, 1)) == [3732, 6765, 6576, 1183]


def test_little_padding(pairs: EncodedPairs) -> None:
    def padding(batches: list[Batch]) -> float:
        masks = [mask for batch in batches for mask in (batch.source_mask, batch.reference_mask)]
        return 1 - sum(int(mask.sum()) for mask in masks) / sum(mask.numel() for mask in masks)

    buckets = fresh(pairs)
    size = 32
    bucketed = [buckets.batch(number * size, size, 1) for number in range(buckets.num_batches(size))]
    assert padding(bucketed) < 0.06
    window = buckets.window(1, 0, 0, size)
    rows = np.arange(size)
    assert padding([Batch(*window.source.padded(rows), *window.target.padded(rows))]) > 0.3


def test_batches_do_not_come_in_the_order_of_length(pairs: EncodedPairs) -> None:
    buckets = fresh(pairs)
    widths = [buckets.batch(number * 32, 32, 1).references.shape[1] for number in range(BATCHES_IN_WINDOW)]
    assert abs(float(np.corrcoef(widths, np.arange(len(widths)))[0, 1])) < 0.3
    assert len(set(widths)) > 15


def test_pairs_of_one_batch_come_from_all_over_the_text(tmp_path: Path) -> None:
    """Pairs of equal length keep the order of the permutation, not that of the file."""
    lines = [Pair(str(number), str(number), "x", number) for number in range(6_400)]
    pairs = encoded_pairs(tmp_path, [], (VOCABULARY, VOCABULARY), PairFilter(50, None), lambda: lines)
    spans = [np.ptp(members(Buckets(pairs, (NUM_TOKENS, NUM_TOKENS)).batch(64 * k, 64, 1))) for k in range(5)]
    assert min(spans) > 4_000


def test_one_pair_is_enough(tmp_path: Path) -> None:
    buckets = fresh(encode(tmp_path, 1))
    for position in (0, 8, 800):
        assert members(buckets.batch(position, 8, 1)) == [0]


@pytest.mark.parametrize(
    ("name", "dtype", "value"), [("target.tokens", "uint16", 60_000), ("source.offsets", "i8", -1)]
)
def test_damage_in_the_middle_of_the_cache_is_told(tmp_path: Path, name: str, dtype: str, value: int) -> None:
    """What lies in the middle of a large file is not looked at when it is opened."""
    pairs = encode(tmp_path, NUM_PAIRS)
    array = np.memmap(pairs.folder / name, dtype, "r+")
    array[len(array) // 2] = value
    array.flush()
    buckets = fresh(pairs)
    with pytest.raises(UserError, match=f"{pairs.folder}: the encoded text is damaged; delete the folder"):
        assert [buckets.batch(64 * number, 64, 1) for number in range(buckets.num_batches(64))]
