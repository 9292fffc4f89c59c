"""Raw lines to token ids and back: vocabularies of words and of subwords, learnt from text.

Id 0 is the end token, which also pads; 1 is the unknown token; the learnt tokens follow.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Protocol

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from seqcritic.data.vocabulary import END, END_TEXT
from seqcritic.data.words import RULES_VERSION, UNKNOWN_WORD, join_words, split_words
from seqcritic.errors import UserError
from seqcritic.progress import log
from seqcritic.settings.data import TokenSettings

UNKNOWN = 1
UNKNOWN_TEXT = "<unk>"
NUM_SPECIAL = 2
WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"
# Bounds of memory for any text: different words to count, and bytes of different words to learn subwords from.
MOST_COUNTED = 3_000_000
MOST_LEARNT_BYTES = 6_000_000


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
    """Whole words; what is not in the list is unknown."""

    def __init__(self, kind: str, lowercase: bool, words: Sequence[str]) -> None:
        self.kind = kind
        self.lowercase = lowercase
        self._texts = [END_TEXT, UNKNOWN_TEXT, *words]
        self._ids = {word: number for number, word in enumerate(words, start=NUM_SPECIAL)}
        if len(self._ids) != len(words):
            raise ValueError("a vocabulary lists every word once")

    def __len__(self) -> int:
        return len(self._texts)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a raw line, without an end token."""
        number_of = self._ids.get
        return [number_of(word, UNKNOWN) for word in self.words(line)]

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of many raw lines."""
        return [self.encode(line) for line in lines]

    def decode(self, ids: Iterable[int]) -> str:
        """Return readable text up to the first end token; an unknown word reads `UNKNOWN_WORD`."""
        words = [UNKNOWN_WORD if word == UNKNOWN_TEXT else word for word in self.tokens(ids)]
        return join_words(words) if self.kind == "words" else " ".join(words)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the words up to the first end token, `<unk>` for unknown ones."""
        return [self._texts[number] for number in takewhile(_goes_on, ids)]

    def words(self, line: str) -> list[str]:
        """Return the words of a raw line, unknown ones included."""
        return _split(line, self.kind, self.lowercase)

    def to_dict(self) -> dict[str, Any]:
        """Return kind, rules and words."""
        words = self._texts[NUM_SPECIAL:]
        return {"kind": self.kind, "rules": RULES_VERSION, "lowercase": self.lowercase, "words": words}


class SubwordVocabulary:
    """Byte-pair encoding of bytes (Sennrich et al. 2016; Radford et al. 2019): any text has ids, none is unknown.

    Decoding gives back every line exactly, but for lower-casing and white space at its ends.
    """

    kind = "subwords"

    def __init__(self, tokenizer: Tokenizer, lowercase: bool) -> None:
        self.lowercase = lowercase
        self._tokenizer = tokenizer
        # No special tokens inside the tokenizer: it would find their names in the text.
        by_number = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        self._pieces = [END_TEXT, _as_piece(f" {UNKNOWN_WORD}"), *(piece for piece, _ in by_number)]
        self._decoder = decoders.ByteLevel()

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a raw line, without an end token."""
        return self.encode_all([line])[0]

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of many raw lines."""
        clean = [_clean(line, self.lowercase) for line in lines]
        encodings = self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)
        return [[number + NUM_SPECIAL for number in encoding.ids] for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """Return readable text up to the first end token."""
        text: str = self._decoder.decode(self._pieces_of(ids))
        return text.removeprefix(" ")

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces up to the first end token; `▁` stands for the space before a word."""
        return [self._show(piece) for piece in self._pieces_of(ids)]

    def words(self, line: str) -> list[str]:
        """Return the words of a raw line: a score of subwords could not be compared with anything."""
        return split_words(_clean(line, self.lowercase))

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the tokenizer's own description."""
        return {"kind": self.kind, "lowercase": self.lowercase, "tokenizer": json.loads(self._tokenizer.to_str())}

    def _pieces_of(self, ids: Iterable[int]) -> list[str]:
        return [self._pieces[number] for number in takewhile(_goes_on, ids)]

    def _show(self, piece: str) -> str:
        if piece == self._pieces[UNKNOWN]:
            return UNKNOWN_TEXT
        text: str = self._decoder.decode([piece])
        # Part of a character has no text of its own.
        return piece if "\N{REPLACEMENT CHARACTER}" in text else text.replace(" ", WORD_START)


def learn_vocabulary(lines: Iterable[str], settings: TokenSettings) -> TextVocabulary:
    """Return the vocabulary that a side of the training text has under the settings; the lines are read once."""
    if settings.kind == "subwords":
        clean = bounded_lines((_clean(line, settings.lowercase) for line in lines), MOST_LEARNT_BYTES)
        return SubwordVocabulary(_train_subwords(clean, settings), settings.lowercase)
    split = (_split(line, settings.kind, settings.lowercase) for line in lines)
    counts = count_words(split, MOST_COUNTED)
    # In a text that others have cut to their vocabulary, the unknown word is no word.
    counts.pop(UNKNOWN_TEXT, None)
    frequent = ((-count, word) for word, count in counts.items() if count >= settings.minimum_count)
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
        while len(counts) > most:
            dropped += 1
            counts = Counter({word: count for word, count in counts.items() if count > dropped})
            log.info(f"more than {most:,} different words: those seen at most {dropped} times so far were forgotten")
    return counts


def bounded_lines(lines: Iterable[str], most_bytes: int) -> Iterator[str]:
    """Yield the lines; once the different words in them exceed so many bytes, without words never seen before.

    The library that learns subwords keeps over a hundred times these bytes. Words that first appear after hundreds of
    thousands of others are too rare to matter to it.
    """
    seen: set[str] = set()
    num_bytes = 0
    for line in lines:
        words = line.split()
        if num_bytes < most_bytes:
            new = set(words) - seen
            num_bytes += sum(len(word.encode()) for word in new)
            seen |= new
            if num_bytes >= most_bytes:
                log.info(f"subwords are learnt from the first {len(seen):,} different words, later ones are too rare")
            yield line
        else:
            yield " ".join(word for word in words if word in seen)


def vocabulary_from_dict(stored: dict[str, Any]) -> TextVocabulary:
    """Return the vocabulary that `to_dict` described."""
    if stored["kind"] == "subwords":
        return SubwordVocabulary(Tokenizer.from_str(json.dumps(stored["tokenizer"])), stored["lowercase"])
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


def _train_subwords(lines: Iterable[str], settings: TokenSettings) -> Tokenizer:
    assert settings.size is not None
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=settings.size,
        min_frequency=settings.minimum_count,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def _split(line: str, kind: str, lowercase: bool) -> list[str]:
    if lowercase:
        line = line.lower()
    return split_words(line) if kind == "words" else line.split()


def _clean(line: str, lowercase: bool) -> str:
    return (line.lower() if lowercase else line).strip()


def _goes_on(number: int) -> bool:
    return number != END


def _as_piece(text: str) -> str:
    """Return a text in the characters by which the tokenizer writes its bytes."""
    ((piece, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return str(piece)
