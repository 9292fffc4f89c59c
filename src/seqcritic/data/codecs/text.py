"""The codec of pairs of texts: a vocabulary of words, characters or subwords for each side.

A model that reads characters and has never seen a space was trained on single words, as one that pronounces them. Lines
are given to it word by word: characters that it does not know are not in the way, whatever they are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Literal, Self

from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import pad
from seqcritic.contracts.codec import Codec, Piece, register_codec
from seqcritic.contracts.score import ScoreOptions
from seqcritic.data.tokens import TextVocabulary, WordVocabulary, vocabulary_from_dict
from seqcritic.data.vocabulary import END, UNKNOWN
from seqcritic.data.words import RULES_VERSION, UNKNOWN_WORD, split_words, without_reserved

BETWEEN_WORDS = " | "  # where predictions have spaces inside, as phonemes do
APOSTROPHES = str.maketrans("\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}", "''")


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

    def cut(self, line: str) -> list[Piece]:
        """Return a raw line in the pieces the model takes: its words where it reads single words, else all of it."""
        if not self._reads_words:
            return super().cut(line)
        return [(word, slice(None)) for word, kind in self._words(line) if kind == "known"]

    def join(self, line: str, pieces: Sequence[Piece], predictions: Sequence[str], raw: bool) -> str:
        """Return the prediction of a line; of its words, with ` | ` between those, or a space where it spells them.

        Numbers, and words of other scripts, stand in their places as they are.
        """
        if not self._reads_words:
            return super().join(line, pieces, predictions, raw)
        # In the order of `cut`, which asks for the words that are known.
        remaining = iter(predictions)
        written = [next(remaining) if kind == "known" else word for word, kind in self._words(line)]
        return (" " if self.target.kind == "characters" else BETWEEN_WORDS).join(written)

    @property
    def _reads_words(self) -> bool:
        return (
            isinstance(self.source, WordVocabulary) and self.source.kind == "characters" and not self.source.knows(" ")
        )

    def _words(self, line: str) -> list[tuple[str, Literal["known", "foreign"]]]:
        """Return the words of a line that the source side can read, and other letters and digits, in their order."""
        found: list[tuple[str, Literal["known", "foreign"]]] = []
        # Folded before it is cut: an accented letter that is not known would part its word in two.
        folded = "".join(map(self._fold, line.translate(APOSTROPHES)))
        for kind, characters in groupby(folded, self._kind_of):
            word = "".join(characters)
            if len(word) > 1 and word[0] == word[-1] == "'":
                word = word.strip("'")  # quotation marks; one alone may be of the word, as in 'em
            if kind != "neither" and any(map(str.isalnum, word)):
                found.append((word, kind))
        return found

    def _fold(self, character: str) -> str:
        """Return a character that is not known without its accents and the like, where that makes it known."""
        if self._kind_of(character) == "known":
            return character
        # NFKD parts a letter from its accents, which are left out below for want of being known.
        plain = unicodedata.normalize("NFKD", character.casefold())
        known = "".join(part for part in plain if self._kind_of(part) == "known")
        return known or character

    def _kind_of(self, character: str) -> Literal["known", "foreign", "neither"]:
        assert isinstance(self.source, WordVocabulary)
        if self.source.knows(character):
            return "known"
        # A mark, as a vowel sign, belongs to the letter before it.
        return "foreign" if character.isalnum() or unicodedata.category(character)[0] == "M" else "neither"

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
