"""The codec's contract: text to ids and back, stored with a model as JSON so that it can be used without its data.

A codec of one's own has two sizes, its special tokens and six functions. Sources need not be text: `encode_sources` may
return features [B, S, F] of what the lines name, such as sound files.

Shapes: B lines, S source tokens or frames, F features, T target tokens.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.registry import Registry
from seqcritic.contracts.score import ScoreOptions
from seqcritic.errors import UserError
from seqcritic.plugins import import_plugin

KIND = "kind"  # of what is stored: the registered name, or module:Class
Piece = tuple[str, slice]
"""Part of a raw line as the model takes it, and the part of the prediction for it that counts."""


class Codec(ABC):
    """Raw text to ids and back; on the target side without and up to the end token."""

    kind: ClassVar[str] = ""
    """The name it is registered by; without one, `module:Class` finds it again."""
    num_source_tokens: int
    """How many ids a source may have; 0 for features."""
    num_target_tokens: int
    """V: how many ids the actor may write, the special ones counted."""
    special: SpecialTokens
    """End, padding and unknown ids of the target side."""
    lowercase: bool = False
    """Whether the target side is without case, so that references are compared without it."""

    @abstractmethod
    def encode_sources(self, lines: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Padded ids [B, S] or features [B, S, F] of source lines, and their mask [B, S]."""

    @abstractmethod
    def encode_references(self, lines: Sequence[str]) -> list[list[int]]:
        """The target ids of each line, without an end token."""

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Target ids as readable text, up to the end token."""

    @abstractmethod
    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Target ids as single tokens, up to the end token."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What `from_dict` makes the same codec of; JSON can hold it."""

    @classmethod
    @abstractmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """The codec that `to_dict` described."""

    def to_dict(self) -> dict[str, Any]:
        """What is stored with a model: the content, and the name by which `codec_from_dict` finds the class."""
        # The name of the class, too, must find it again, so that one inside a function is refused before it is stored.
        return {KIND: self.kind or _place_of(type(self)), **self.content()}

    def texts(self, tokens: Tensor) -> list[str]:
        """Rows of target ids [B, T] as text, each up to its end token."""
        return [self.decode(row) for row in tokens.tolist()]

    def source_tokens(self, ids: Sequence[int]) -> list[str]:
        """Source ids as single tokens, to be shown."""
        return [str(token_id) for token_id in ids]

    def normalise(self, line: str) -> str:
        """A raw line as the data has it, where that is not the same."""
        return line

    def cut(self, line: str) -> list[Piece]:
        """The pieces of a raw line that the model reads one by one; here the whole line, and none of an empty one."""
        return [(line, slice(None))] if line.strip() else []

    def join(self, line: str, pieces: Sequence[Piece], predictions: Sequence[str], raw: bool) -> str:
        """The predictions of a raw line's pieces as one line; an empty line stays empty.

        Where the model reads a normal form of the line, what it left alone is as in the line, unless `raw`.
        """
        return predictions[0] if predictions else ""

    def reads_like(self, other: Codec) -> bool:
        """Whether ids mean the same to both, so that a model trained with one goes on with the other."""
        return self.to_dict() == other.to_dict()

    def digest(self) -> str:
        """A short hash of all that decides ids."""
        # Sorted: a codec that was read back may have its keys in another order.
        stored = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.blake2b(stored.encode(), digest_size=12).hexdigest()

    def score_options(self) -> ScoreOptions:
        """What a score must know of the texts; here, that tokens are the words between spaces of plain text."""
        return ScoreOptions(
            tokens="words", unknown=self.special.unknown, lowercase=self.lowercase, split=str.split, rules="whitespace"
        )


CODECS: Registry[Codec] = Registry("codec", "codec", "seqcritic.data.codecs")
Class = TypeVar("Class", bound=type[Codec])


def register_codec(name: str) -> Callable[[Class], Class]:
    """Return a decorator that makes a codec known by this name; stored models then have the name, not the class."""

    def add(found: Class) -> Class:
        found.kind = name
        return CODECS.register(name)(found)

    return add


def codec_from_dict(stored: Any) -> Codec:
    """Return the codec that `to_dict` described; a class outside the package is imported."""
    if not isinstance(stored, dict) or not isinstance(stored.get(KIND), str):
        raise UserError("the stored codec does not say of which kind it is; the file is damaged or of another version")
    kind = stored[KIND]
    found = _import_codec(kind) if ":" in kind else CODECS.find(kind)
    try:
        return found.from_dict(stored)
    # What `from_dict` stumbles over in a file that somebody changed.
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f"the stored codec '{kind}' is damaged: {error!r}") from None


def _import_codec(kind: str) -> type[Codec]:
    module, _, path = kind.partition(":")
    try:
        found: Any = import_plugin(module)
        for name in path.split("."):  # a class may stand inside another
            found = getattr(found, name)
    except UserError as error:
        # The setting that the message names is not where this module was named.
        raise UserError(f"the codec '{kind}' of the model: {str(error).removeprefix('plugins: ')}") from None
    except AttributeError as error:
        raise UserError(f"the codec '{kind}' of the model: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Codec)):
        raise UserError(f"the codec '{kind}' of the model is not a Codec")
    return found


def _place_of(codec: type[Codec]) -> str:
    if "<locals>" in codec.__qualname__:
        raise UserError(
            f"{codec.__qualname__}: a codec is stored by the name of its class; define the class outside of functions"
        )
    return f"{codec.__module__}:{codec.__qualname__}"
