"""Raw lines to token ids and back: vocabularies of words, characters and subwords, learnt from text or given.

Id 0 is the end token, which also pads; 1 is the unknown token; the learnt tokens follow.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Protocol

from seqcritic.data.subwords import learn_subwords, read_tokenizer, stored_tokenizer
from seqcritic.data.vocabulary import END, END_TEXT, NUM_SPECIAL, UNKNOWN, UNKNOWN_TEXT
from seqcritic.data.words import RULES_VERSION, UNKNOWN_WORD, join_words, split_words
from seqcritic.errors import UserError
from seqcritic.progress import log
from seqcritic.settings.data import TokenSettings

# A bound of memory for any text: different words to count.
MOST_COUNTED = 3_000_000


class TextVocabulary(Protocol):
    """What the data and the model ask of a vocabulary."""

    kind: str
    lowercase: bool

    def __len__(self) -> int:
        """Count the tokens, the end and the unknown token included."""

    def encode(self, line: str) -> list[int]:
        """Return the ids of a raw line, without an end token."""

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of many raw lines."""

    def decode(self, ids: Iterable[int]) -> str:
        """Return readable text up to the first end token."""

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens up to the first end token, one string each."""

    def words(self, line: str) -> list[str]:
        """Return a raw line as the words that a score of tokenised text counts, unknown ones included."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `vocabulary_from_dict` makes the same vocabulary of; JSON can hold it."""


class Encoder(Protocol):
    """What the cache of encoded pairs asks of one side."""

    def __len__(self) -> int:
        """Count the ids."""

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of many raw lines."""

    def to_dict(self) -> dict[str, Any]:
        """Return what decides the ids; JSON can hold it."""


class WordVocabulary:
    """Whole words, or single characters; what is not in the list is unknown."""

    def __init__(self, kind: str, lowercase: bool, words: Sequence[str]) -> None:
        self.kind = kind
        self.lowercase = lowercase
        self._texts = [END_TEXT, UNKNOWN_TEXT, *words]
        self._ids = {word: token_id for token_id, word in enumerate(words, start=NUM_SPECIAL)}
        if len(self._ids) != len(words):
            raise ValueError("a vocabulary lists every word once")

    def __len__(self) -> int:
        return len(self._texts)

    def knows(self, word: str) -> bool:
        """Return whether a word, or a character, has an id of its own."""
        return (word.lower() if self.lowercase else word) in self._ids

    def encode(self, line: str) -> list[int]:
        """Return the ids of a raw line, without an end token."""
        id_of = self._ids.get
        return [id_of(word, UNKNOWN) for word in _split(line, self.kind, self.lowercase)]

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of many raw lines."""
        return [self.encode(line) for line in lines]

    def decode(self, ids: Iterable[int]) -> str:
        """Return readable text up to the first end token; an unknown word reads `UNKNOWN_WORD`."""
        words = [UNKNOWN_WORD if word == UNKNOWN_TEXT else word for word in self.tokens(ids)]
        if self.kind == "words":
            return join_words(words)
        return ("" if self.kind == "characters" else " ").join(words)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the words up to the first end token, `<unk>` for unknown ones."""
        return [self._texts[token_id] for token_id in takewhile(lambda token_id: token_id != END, ids)]

    def words(self, line: str) -> list[str]:
        """Return the words of a raw line, unknown ones included, also where the tokens are characters."""
        return _split(line, "words" if self.kind == "characters" else self.kind, self.lowercase)

    def to_dict(self) -> dict[str, Any]:
        """Return kind, rules and words."""
        words = self._texts[NUM_SPECIAL:]
        return {"kind": self.kind, "rules": RULES_VERSION, "lowercase": self.lowercase, "words": words}


def learn_vocabulary(lines: Iterable[str], settings: TokenSettings, setting: str = "tokens") -> TextVocabulary:
    """Return the vocabulary that a side of the training text has under the settings.

    The lines are read once, or not at all where a tokenizer is given; `setting` is what a fault of that names.
    """
    if settings.kind == "tokenizer":
        return read_tokenizer(settings, setting)
    if settings.kind == "subwords":
        return learn_subwords(lines, settings)
    split = (_split(line, settings.kind, settings.lowercase) for line in lines)
    counts = count_words(split, MOST_COUNTED)
    # In a text that others have cut to their vocabulary, the unknown word is no word.
    counts.pop(UNKNOWN_TEXT, None)
    # Words of one count by the alphabet: ids do not depend on the order in which they were met.
    frequent = ((-count, word) for word, count in counts.items() if count >= settings.minimum_count)
    # Rising, and so the most frequent first.
    chosen = sorted(frequent) if settings.size is None else heapq.nsmallest(settings.size, frequent)
    return WordVocabulary(settings.kind, settings.lowercase, [word for _, word in chosen])


def count_words(lines: Iterable[Sequence[str]], most: int) -> Counter[str]:
    """Count words; whenever there are more than `most`, drop the rarest (lossy counting, Manku and Motwani 2002).

    The k-th time, words counted at most k times are dropped, so a count is too low by at most the number of times.
    """
    counts: Counter[str] = Counter()
    dropped = 0
    for words in lines:
        counts.update(words)
        while len(counts) > most:  # dropping once may not be enough
            dropped += 1
            counts = Counter({word: count for word, count in counts.items() if count > dropped})
            log.info(f"more than {most:,} different words: those seen at most {dropped} times so far were forgotten")
    return counts


def vocabulary_from_dict(stored: dict[str, Any]) -> TextVocabulary:
    """Return the vocabulary that `to_dict` described."""
    if "tokenizer" in stored:
        return stored_tokenizer(stored)
    if stored["rules"] != RULES_VERSION:
        raise UserError(
            f"the vocabulary was made by version {stored['rules']} of the word rules, this is version {RULES_VERSION}; "
            "use the version of seqcritic that made it"
        )
    return WordVocabulary(stored["kind"], stored["lowercase"], stored["words"])


def vocabulary_digest(vocabulary: Encoder) -> str:
    """Return a short hash of all that decides a vocabulary's ids."""
    content = json.dumps(vocabulary.to_dict(), sort_keys=True)
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def _split(line: str, kind: str, lowercase: bool) -> list[str]:
    if lowercase:
        line = line.lower()
    if kind == "characters":
        # Spaces inside are tokens; at the ends they would be noise of the files.
        return list(line.strip())
    return split_words(line) if kind == "words" else line.split()
