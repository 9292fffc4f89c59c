"""Lines from a pipe: complete ones at once, in order, each once, however the writer cuts them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from seqcritic.commands import arriving_lines
from seqcritic.errors import UserError


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The reading and the writing end of a pipe; the test closes the writing end."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\n\n\ntwo", ["one", "", "", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        ("ünï\u2028cøde\x85\n".encode(), ["ünï\u2028cøde\x85"]),
    ],
)
def test_lines_of_a_finished_writer(content: bytes, lines: list[str], pipe: tuple[int, int]):
    reading, writing = pipe
    os.write(writing, content)
    os.close(writing)
    assert [line for group in arriving_lines(reading) for line in group] == lines


def test_complete_lines_are_given_before_the_next_are_written(pipe: tuple[int, int]):
    reading, writing = pipe
    groups = arriving_lines(reading)
    os.write(writing, b"one\ntwo\nthr")
    assert next(groups) == ["one", "two"]
    os.write(writing, b"ee\n")
    assert next(groups) == ["three"]
    os.write(writing, b"four")
    os.close(writing)
    assert list(groups) == [["four"]]


def test_a_character_may_be_cut_between_two_reads(pipe: tuple[int, int]):
    reading, writing = pipe
    groups = arriving_lines(reading)
    first, second = "é".encode()[:1], "é".encode()[1:]
    os.write(writing, b"one\n" + first)
    assert next(groups) == ["one"]
    os.write(writing, second)
    os.close(writing)
    assert list(groups) == [["é"]]


def test_what_is_not_utf8_is_named_by_its_line(pipe: tuple[int, int]):
    reading, writing = pipe
    groups = arriving_lines(reading)
    os.write(writing, b"one\ntwo\n")
    assert next(groups) == ["one", "two"]
    os.write(writing, b"three\nf\xffur\n")
    os.close(writing)
    assert next(groups) == ["three"], "what comes before it is answered"
    with pytest.raises(UserError, match="standard input:4: not valid UTF-8"):
        next(groups)
