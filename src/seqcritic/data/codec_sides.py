"""The two sides of any codec as the cache of encoded pairs asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqcritic.contracts.batch import unpadded
from seqcritic.contracts.codec import Codec
from seqcritic.data.codecs.text import TextCodec
from seqcritic.data.tokens import Encoder

FEATURES_AT_ONCE = 16  # in memory; the codec keeps them elsewhere


def sides_of(codec: Codec) -> tuple[Encoder, Encoder]:
    """Return what encodes sources and targets: sources with all their ends, or, in vocabularies, without."""
    if isinstance(codec, TextCodec):
        return codec.source, codec.target
    return (_Features(codec) if has_features(codec) else _Sources(codec)), _Targets(codec)


def has_features(codec: Codec) -> bool:
    """Tell whether sources are read as features: a batch then has to ask the codec for them, by their lines."""
    return codec.num_source_tokens == 0


def sources_end(codec: Codec) -> bool:
    """Tell whether the sources of `sides_of` are still to be closed by an end token."""
    return isinstance(codec, TextCodec)


class _Features:
    """In place of ids: one number for every source, after its features have been made, and kept by the codec."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def __len__(self) -> int:
        return 1

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        for first in range(0, len(lines), FEATURES_AT_ONCE):
            self._codec.encode_sources(lines[first : first + FEATURES_AT_ONCE])
        # One token, so that the filter by lengths and the order by buckets see each source alike.
        return [[0]] * len(lines)

    def to_dict(self) -> dict[str, Any]:
        return {"side": "source", "codec": self._codec.digest()}


class _Sources:
    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def __len__(self) -> int:
        return self._codec.num_source_tokens

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        rows: list[list[int]] = [row.tolist() for row in unpadded(*self._codec.encode_sources(lines))]
        return rows

    def to_dict(self) -> dict[str, Any]:
        return {"side": "source", "codec": self._codec.digest()}


class _Targets:
    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def __len__(self) -> int:
        return self._codec.num_target_tokens

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        return self._codec.encode_references(lines)

    def to_dict(self) -> dict[str, Any]:
        return {"side": "target", "codec": self._codec.digest()}
