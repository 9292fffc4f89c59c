"""Checks of the flat arrays of sequences: written, mapped, taken, padded, and never loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from seqcritic.contracts.batch import pad
from seqcritic.data.packed_rows import MappedPackedRows, PackedRowsWriter, flat_positions, token_type

SEQUENCES = [[5, 6], [7], [8, 9, 65_535], [10], [11, 12, 13, 14]]


def write(folder: Path, parts: list[list[list[int]]], dtype: str = "uint16") -> MappedPackedRows:
    tokens, offsets = folder / "tokens", folder / "offsets"
    with tokens.open("wb") as token_stream, offsets.open("wb") as offset_stream:
        writer = PackedRowsWriter(token_stream, offset_stream, dtype)
        for part in parts:
            writer.add(part)
    return MappedPackedRows(tokens, offsets, dtype)


def resident_file_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssFile:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("the system does not tell")


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_written_in_parts_and_taken_in_any_order(tmp_path: Path, dtype: str) -> None:
    array = write(tmp_path, [SEQUENCES[:2], [], SEQUENCES[2:]], dtype)
    assert len(array) == 5
    chosen = np.array([4, 0, 2, 2], np.int32)
    taken = array.take(chosen)
    assert taken.tokens.dtype == np.dtype(dtype)
    assert taken.lengths.tolist() == [4, 2, 3, 3]
    assert taken.tokens.tolist() == [11, 12, 13, 14, 5, 6, 8, 9, 65_535, 8, 9, 65_535]


def test_padding_agrees_with_that_of_lists(tmp_path: Path) -> None:
    taken = write(tmp_path, [SEQUENCES]).take(np.arange(5, dtype=np.int32))
    for rows in ([0, 1, 2, 3, 4], [3], [4, 1], [2, 2, 0]):
        ids, mask = taken.padded(np.array(rows))
        expected_numbers, expected_mask = pad([SEQUENCES[row] for row in rows])
        assert ids.tolist() == expected_numbers.tolist()
        assert mask.tolist() == expected_mask.tolist()
        assert ids.dtype == expected_numbers.dtype


def test_positions() -> None:
    assert flat_positions(np.array([10, 3, 7]), np.array([2, 0, 3])).tolist() == [10, 11, 7, 8, 9]


def test_smallest_type_that_holds_the_vocabulary() -> None:
    assert [token_type(size) for size in (2, 65_536, 65_537)] == ["uint16", "uint16", "int32"]


def test_offsets_outside_the_tokens_are_a_fault(tmp_path: Path) -> None:
    write(tmp_path, [SEQUENCES])
    np.array([0, 2, 3, 99, 7, 11], np.int64).tofile(tmp_path / "offsets")
    array = MappedPackedRows(tmp_path / "tokens", tmp_path / "offsets", "uint16")
    with pytest.raises(ValueError, match="do not fit"):
        array.take(np.array([2], np.int32))
    assert array.take(np.array([0], np.int32)).tokens.tolist() == [5, 6]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what is resident")
def test_files_are_not_loaded(tmp_path: Path) -> None:
    num_sequences, length = 2_000_000, 32
    with (tmp_path / "tokens").open("wb") as stream:
        stream.truncate(2 * length * num_sequences)
    np.arange(0, length * num_sequences + 1, length).tofile(tmp_path / "offsets")
    array = MappedPackedRows(tmp_path / "tokens", tmp_path / "offsets", "uint16")
    chosen = np.random.default_rng(1).permutation(num_sequences).astype(np.int32)
    before = resident_file_bytes()
    # All of both files is asked for in the end: 144 MB.
    for first in range(0, num_sequences, 100_000):
        array.take(chosen[first : first + 100_000])
        assert resident_file_bytes() - before < 10_000_000
