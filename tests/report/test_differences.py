"""Differences are shortest edits, and putting the pieces together gives both texts back."""

import random

import pytest

from seqcritic.report.differences import Kind, Piece, compare_characters, compare_words


@pytest.mark.parametrize(
    ("written", "reference", "pieces", "num_edits"),
    [
        ("cat", "cat", [(Kind.EQUAL, "cat", "cat")], 0),
        ("cot", "cat", [(Kind.EQUAL, "c", "c"), (Kind.WRONG, "o", "a"), (Kind.EQUAL, "t", "t")], 1),
        ("cabt", "cat", [(Kind.EQUAL, "ca", "ca"), (Kind.EXTRA, "b", ""), (Kind.EQUAL, "t", "t")], 1),
        ("ct", "cat", [(Kind.EQUAL, "c", "c"), (Kind.MISSING, "", "a"), (Kind.EQUAL, "t", "t")], 1),
        ("", "ab", [(Kind.MISSING, "", "ab")], 2),
        ("ab", "", [(Kind.EXTRA, "ab", "")], 2),
        ("", "", [], 0),
    ],
)
def test_characters(written: str, reference: str, pieces: list[tuple[Kind, str, str]], num_edits: int) -> None:
    difference = compare_characters(written, reference)
    assert difference.pieces == tuple(Piece(*piece) for piece in pieces)
    assert difference.num_edits == num_edits


def test_words() -> None:
    difference = compare_words("the  cat sat mat", "the dog sat on mat")
    assert difference.num_edits == 2
    assert difference.separator == " "
    assert difference.pieces == (
        Piece(Kind.EQUAL, "the", "the"),
        Piece(Kind.WRONG, "cat", "dog"),
        Piece(Kind.EQUAL, "sat", "sat"),
        Piece(Kind.MISSING, "", "on"),
        Piece(Kind.EQUAL, "mat", "mat"),
    )


def test_pieces_give_both_texts_back() -> None:
    randomness = random.Random(3)
    for _ in range(200):
        written, reference = ("".join(randomness.choices("ab ", k=randomness.randrange(12))) for _ in range(2))
        pieces = compare_characters(written, reference).pieces
        assert "".join(piece.written for piece in pieces) == written
        assert "".join(piece.expected for piece in pieces) == reference
