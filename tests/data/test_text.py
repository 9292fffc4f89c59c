"""Text files: plain and gzipped lines, and faults named by file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from seqcritic.data.text import read_all_lines, read_lines
from seqcritic.errors import UserError

CONTENT = b"\xef\xbb\xbfone\r\n\ntwo \xc3\xa9\nthree"
LINES = ["one", "", "two é", "three"]


def test_lines_lose_their_ends_and_nothing_else(tmp_path: Path):
    (tmp_path / "text.txt").write_bytes(CONTENT)
    assert list(read_lines(tmp_path / "text.txt", "data.train")) == LINES


def test_gzipped_files_read_the_same(tmp_path: Path):
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(CONTENT))
    assert list(read_lines(tmp_path / "text.txt.gz", "data.train")) == LINES


def test_files_are_read_one_after_the_other(tmp_path: Path):
    (tmp_path / "a").write_text("1\n2", encoding="utf-8")
    (tmp_path / "b").write_text("3\n", encoding="utf-8")
    assert read_all_lines((str(tmp_path / "b"), str(tmp_path / "a")), "data.train") == ["3", "1", "2"]


def damaged_gzip(content: bytes) -> bytes:
    """Return a gzip file with some bytes in its middle replaced."""
    packed = bytearray(gzip.compress(content, mtime=0))
    packed[len(packed) // 2 : len(packed) // 2 + 8] = bytes(8)
    return bytes(packed)


LONG = b"".join(b"%d is a line of text\n" % number for number in range(1000))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.txt", b"", "is empty; give a file"),
        ("a.gz", gzip.compress(b"", mtime=0), "is empty; give a file"),
        ("a.txt", b"one\ntwo\nthr\xffee\n", ":3: not valid UTF-8 (byte 4 of the line)"),
        ("a.gz", gzip.compress(b"one\n\xff\n", mtime=0), ":2: not valid UTF-8 (byte 1 of the line)"),
        ("a.gz", b"plain text\n", "damaged gzip file"),
        ("a.gz", gzip.compress(LONG, mtime=0)[:-100], "damaged gzip file"),
        ("a.gz", damaged_gzip(LONG), "damaged gzip file"),
        ("a.gz", gzip.compress(LONG, mtime=0) + b"rubbish", "damaged gzip file"),
    ],
)
def test_bad_files_are_named(name: str, content: bytes, complaint: str, tmp_path: Path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(read_lines(path, "data.valid"))
    assert str(caught.value).startswith(f"data.valid: {path}")
    assert complaint in str(caught.value)


def test_what_is_no_file_is_named(tmp_path: Path):
    with pytest.raises(UserError, match=r"data\.test: no such file: .*missing"):
        list(read_lines(tmp_path / "missing", "data.test"))
    with pytest.raises(UserError, match=r"data\.test: .* is a folder"):
        list(read_lines(tmp_path, "data.test"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(UserError, match=r"data\.test: .*loop"):
        list(read_lines(tmp_path / "loop", "data.test"))
