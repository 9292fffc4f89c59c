"""The codec of pairs of texts: a vocabulary of words, characters or subwords for each side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import pad
from seqcritic.contracts.codec import Codec, register_codec
from seqcritic.contracts.score import ScoreOptions
from seqcritic.data.tokens import TextVocabulary, vocabulary_from_dict
from seqcritic.data.vocabulary import END, UNKNOWN
from seqcritic.data.words import RULES_VERSION, UNKNOWN_WORD, split_words, without_reserved


@register_codec("text")
class TextCodec(Codec):
    """Raw lines in the tokens of two vocabularies."""

    special: SpecialTokens = SpecialTokens(end=(END,), padding=END, unknown=UNKNOWN)

    def __init__(self, source: TextVocabulary, target: TextVocabulary) -> None:
        self.source, self.target = source, target
        self.num_source_tokens, self.num_target_tokens = len(source), len(target)
        self.lowercase = target.lowercase

    def content(self) -> dict[str, Any]:
        """Return both vocabularies."""
        return {"source": self.source.to_dict(), "target": self.target.to_dict()}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the codec that `to_dict` described."""
        return cls(vocabulary_from_dict(stored["source"]), vocabulary_from_dict(stored["target"]))

    def score_options(self) -> ScoreOptions:
        """Return what the tokens of predictions and references are."""
        return options_of_tokens(self.target.kind, self.lowercase)

    def encode_sources(self, lines: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return raw source lines as padded ids and their mask; an empty line is an end token alone."""
        return pad(self.source.encode_all(lines))

    def encode_references(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the target ids of raw lines."""
        return self.target.encode_all(lines)

    def decode(self, ids: Sequence[int]) -> str:
        """Return target ids as readable text, up to the end token."""
        return self.target.decode(ids)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return target ids as single tokens, up to the end token."""
        return self.target.tokens(ids)

    def source_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return source ids as single tokens, up to the end token."""
        return self.source.tokens(ids)

    def normalise(self, line: str) -> str:
        """Return a raw line in which nothing reads like an unknown token."""
        return without_reserved(line)

    def tokenised_lines(self, lines: Sequence[str]) -> list[str]:
        """Return raw target lines as words between spaces, as scores of tokenised text take references."""
        return [" ".join(self.target.words(line)) for line in lines]


def options_of_tokens(kind: str, lowercase: bool) -> ScoreOptions:
    """Return what a score must know of texts that are made of tokens of this kind."""
    splits: dict[str, tuple[Callable[[str], list[str]], str]] = {
        "words": (split_words, f"words.{RULES_VERSION}"),
        "whitespace": (str.split, "whitespace"),
    }
    split, rules = splits.get(kind, (None, ""))
    return ScoreOptions(
        tokens="subwords" if kind == "tokenizer" else kind,
        unknown=UNKNOWN,
        unknown_word=UNKNOWN_WORD,
        lowercase=lowercase,
        split=split,
        rules=rules,
    )
