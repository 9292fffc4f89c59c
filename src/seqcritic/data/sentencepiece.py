"""SentencePiece models as tokenizers of the library `tokenizers`, without SentencePiece's own package.

A model is one protocol-buffer message: the pieces with their scores and types, how it was trained, how text is brought
to a normal form. Only these few fields are read (their numbers are those of sentencepiece_model.proto).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
PIECES, TRAINER, NORMALISER = 1, 2, 3
PIECE_TEXT, PIECE_SCORE, PIECE_TYPE = 1, 2, 3
MODEL_TYPE, SPACE_AS_SUFFIX, BYTE_FALLBACK = 3, 24, 35
CHARACTER_MAP, ADDS_SPACE, REMOVES_SPACES = 2, 3, 4
VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
UNIGRAM, BPE = 1, 2
Value = int | bytes


class PieceType(IntEnum):
    """What a piece is for."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3  # a begin or an end, which no text has
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Piece(NamedTuple):
    """A token of the model."""

    text: str
    score: float
    type: PieceType


def read_sentencepiece(content: bytes) -> Tokenizer:
    """Return the tokenizer of a model's file; a ValueError where it is none, or of another kind."""
    fields = list(_fields(content))
    pieces = [_piece(value) for number, value in fields if number == PIECES and isinstance(value, bytes)]
    if not pieces:
        raise ValueError("it lists no pieces")
    trainer, normaliser = _section(fields, TRAINER), _section(fields, NORMALISER)
    if trainer.get(SPACE_AS_SUFFIX):
        raise ValueError("a model with spaces after words is not supported")
    # Ids are places in this list, not the model's own: ours stand for its begin and end.
    used = [piece for piece in pieces if piece.type not in (PieceType.CONTROL, PieceType.UNUSED)]
    kind = trainer.get(MODEL_TYPE, UNIGRAM)  # fields with their default value may not be written
    if kind not in (UNIGRAM, BPE):
        raise ValueError("a model of words or characters is not supported")
    tokenizer = Tokenizer((_unigram if kind == UNIGRAM else _bpe)(used, bool(trainer.get(BYTE_FALLBACK, 0))))
    # Taken whole wherever they stand, before the model cuts up the rest.
    tokenizer.add_tokens([piece.text for piece in used if piece.type is PieceType.USER_DEFINED])
    steps: list[normalizers.Normalizer] = []
    if mapped := normaliser.get(CHARACTER_MAP):
        assert isinstance(mapped, bytes)
        steps.append(normalizers.Precompiled(mapped))
    if normaliser.get(REMOVES_SPACES, 1):
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    # Words can be cut apart first, which is faster, unless a piece goes over several of them.
    within_words = not any(SPACE in piece.text[1:] for piece in used if piece.text.strip(SPACE))
    scheme = "always" if normaliser.get(ADDS_SPACE, 1) else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme=scheme, split=within_words)
    tokenizer.decoder = decoders.Sequence(
        # Strip takes away the one space that was put before the line's first word.
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def _unigram(pieces: list[Piece], byte_fallback: bool) -> models.Model:
    unknown = next((token_id for token_id, piece in enumerate(pieces) if piece.type is PieceType.UNKNOWN), None)
    return models.Unigram([(piece.text, piece.score) for piece in pieces], unknown, byte_fallback)


def _bpe(pieces: list[Piece], byte_fallback: bool) -> models.Model:
    """Return BPE whose merges are in the order of the scores of what they make, as SentencePiece takes them."""
    ids = {piece.text: token_id for token_id, piece in enumerate(pieces)}
    merges: list[tuple[str, str]] = []
    for piece in sorted(pieces, key=lambda piece: -piece.score):
        if piece.type is PieceType.NORMAL:
            # The file has no merges: any two pieces that make this one may have been it.
            halves = [(piece.text[:cut], piece.text[cut:]) for cut in range(1, len(piece.text))]
            merges += [(left, right) for left, right in halves if left in ids and right in ids]
    unknown = next((piece.text for piece in pieces if piece.type is PieceType.UNKNOWN), None)
    return models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=byte_fallback)


def _piece(content: bytes) -> Piece:
    fields = dict(_fields(content))
    text, score, kind = fields[PIECE_TEXT], fields.get(PIECE_SCORE, b"\0\0\0\0"), fields.get(PIECE_TYPE, 1)
    if not isinstance(text, bytes) or not isinstance(score, bytes) or not isinstance(kind, int):
        raise ValueError("a piece without text")
    return Piece(text.decode(), struct.unpack("<f", score)[0], PieceType(kind))


def _section(fields: list[tuple[int, Value]], wanted: int) -> dict[int, Value]:
    found = next((value for number, value in fields if number == wanted), b"")
    return dict(_fields(found)) if isinstance(found, bytes) else {}


def _fields(content: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the numbers and values of a message's fields."""
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        if key & 7 == VARINT:
            number, place = _varint(content, place)
            yield key >> 3, number
            continue
        if key & 7 == BYTES:
            size, place = _varint(content, place)
        else:
            # Of an unknown kind the size is not known; the whole content never fits, and the file is refused.
            size = {EIGHT_BYTES: 8, FOUR_BYTES: 4}.get(key & 7, len(content))
        if place + size > len(content):
            raise ValueError("it ends too early")
        yield key >> 3, content[place : place + size]
        place += size


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """Return the number that begins at a place, seven bits a byte, and where it ends."""
    number = shift = 0
    while True:
        if place >= len(content):
            raise ValueError("it ends too early")
        byte = content[place]
        place += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:  # without the eighth bit it is the last
            return number, place
