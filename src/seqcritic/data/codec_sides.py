"""The two sides of any codec as the cache of encoded pairs asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqcritic.contracts.batch import unpadded
from seqcritic.contracts.codec import Codec
from seqcritic.data.codecs.text import TextCodec
from seqcritic.data.tokens import Encoder
from seqcritic.errors import UserError


def sides_of(codec: Codec) -> tuple[Encoder, Encoder]:
    """Return what encodes sources and targets: sources with all their ends, or, in vocabularies, without."""
    if isinstance(codec, TextCodec):
        return codec.source, codec.target
    if codec.num_source_tokens == 0:
        raise UserError("codec: its sources are features, not ids; a task of your own makes batches of them")
    return _Sources(codec), _Targets(codec)


def sources_end(codec: Codec) -> bool:
    """Tell whether the sources of `sides_of` are still to be closed by an end token."""
    return isinstance(codec, TextCodec)


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
