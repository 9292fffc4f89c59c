"""Vocabularies of subwords: byte-level BPE learnt from text, or the tokenizer that somebody has already made.

A given tokenizer is a file of the library `tokenizers` (tokenizer.json) or a SentencePiece model. It is stored whole
with a model, so that the file is not needed again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from seqcritic.data.sentencepiece import read_sentencepiece
from seqcritic.data.vocabulary import END, END_TEXT, NUM_SPECIAL, UNKNOWN, UNKNOWN_TEXT
from seqcritic.data.words import UNKNOWN_WORD, split_words
from seqcritic.errors import UserError
from seqcritic.progress import log
from seqcritic.settings.data import TokenSettings

WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"
# A bound of memory for any text: bytes of different words to learn subwords from.
MOST_LEARNT_BYTES = 6_000_000


class SubwordVocabulary:
    """The pieces of a tokenizer: any text has ids.

    Those learnt here are byte-pair encoding of bytes (Sennrich et al. 2016; Radford et al. 2019), kind `subwords`: none
    is unknown, and decoding gives back every line exactly, but for lower-casing and white space at its ends. A given
    tokenizer, kind `tokenizer`, may change the text as it likes. Its own ends, paddings and masks get no ids: ours
    stand for them.
    """

    def __init__(self, tokenizer: Tokenizer, lowercase: bool, kind: str = "subwords") -> None:
        self.kind = kind
        self.lowercase = lowercase
        self._tokenizer = tokenizer
        # A given file may have been stored with either, and lines would come back cut or filled up.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # else it would find their names in the text
        # Our ids follow the order of its own, without those that are left out.
        by_id = sorted((token_id, piece) for piece, token_id in tokenizer.get_vocab().items())
        left_out = {token_id for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        kept = [(token_id, piece) for token_id, piece in by_id if token_id not in left_out | {_unknown_of(tokenizer)}]
        self._ids = {token_id: ours for ours, (token_id, _) in enumerate(kept, start=NUM_SPECIAL)}
        # As those learnt here, to which no decoder is given; a file's own decoder is taken as it is.
        writes_bytes = isinstance(tokenizer.pre_tokenizer, pre_tokenizers.ByteLevel) and tokenizer.decoder is None
        self._decoder = decoders.ByteLevel() if writes_bytes else tokenizer.decoder
        pieces = [piece for _, piece in kept]
        self._pieces = [END_TEXT, self._unknown_piece(pieces), *pieces]

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, line: str) -> list[int]:
        """Return the ids of a raw line, without an end token."""
        return self.encode_all([line])[0]

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of many raw lines."""
        clean = [_clean(line, self.lowercase) for line in lines]
        # Fast: without the places of the pieces in the text, which nobody asks for.
        encodings = self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)
        id_of = self._ids.get
        return [[id_of(token_id, UNKNOWN) for token_id in encoding.ids] for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """Return readable text up to the first end token."""
        pieces = self._pieces_of(ids)
        text: str = " ".join(pieces) if self._decoder is None else self._decoder.decode(pieces)
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
        return [self._pieces[token_id] for token_id in takewhile(lambda token_id: token_id != END, ids)]

    def _unknown_piece(self, pieces: Sequence[str]) -> str:
        """Return what the decoder makes an unknown word of, with the space before it where pieces have theirs."""
        if isinstance(self._decoder, decoders.ByteLevel):
            return _as_piece(f" {UNKNOWN_WORD}")
        starts = any(piece.startswith(WORD_START) for piece in pieces)
        return f"{WORD_START * starts}{UNKNOWN_WORD}"

    def _show(self, piece: str) -> str:
        if piece == self._pieces[UNKNOWN]:
            return UNKNOWN_TEXT
        if not isinstance(self._decoder, decoders.ByteLevel):
            return piece
        text: str = self._decoder.decode([piece])
        # Part of a character has no text of its own.
        return piece if "\N{REPLACEMENT CHARACTER}" in text else text.replace(" ", WORD_START)


def learn_subwords(lines: Iterable[str], settings: TokenSettings) -> SubwordVocabulary:
    """Return the subwords of a text, which is read once."""
    assert settings.size is not None
    tokenizer = Tokenizer(models.BPE())
    # The line's first word gets a space too, and so the same pieces as inside a line.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trainer = trainers.BpeTrainer(
        vocab_size=settings.size,
        min_frequency=settings.minimum_count,
        # All 256 bytes, seen or not, so that no text is unknown; sorted, since the library's order is by chance.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    clean = bounded_lines((_clean(line, settings.lowercase) for line in lines), MOST_LEARNT_BYTES)
    tokenizer.train_from_iterator(clean, trainer)
    return SubwordVocabulary(tokenizer, settings.lowercase)


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


def read_tokenizer(settings: TokenSettings, setting: str) -> SubwordVocabulary:
    """Return the vocabulary of the file that the settings name; `setting` is where, such as data.source_tokens."""
    assert settings.file is not None
    path = Path(settings.file)
    if path.is_dir():
        raise UserError(f"{setting}.file: {path} is a folder; name the tokenizer.json or the .model in it")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{setting}.file: cannot read {path}: {error.strerror or error}") from None
    try:
        tokenizer = Tokenizer.from_buffer(content) if content.lstrip()[:1] == b"{" else read_sentencepiece(content)
    except Exception as error:  # the library raises nothing narrower
        raise UserError(
            f"{setting}.file: {path} is neither a tokenizer.json of the library tokenizers nor a SentencePiece model "
            f"of unigrams or BPE ({str(error).splitlines()[0]})"
        ) from None
    normaliser = tokenizer.normalizer
    # References would keep their capitals in the score, which no prediction could match.
    if normaliser is not None and "a" in normaliser.normalize_str("A") and not settings.lowercase:
        raise UserError(f"{setting}.lowercase: the tokenizer {path} writes all in lower case; set it true")
    return SubwordVocabulary(tokenizer, settings.lowercase, "tokenizer")


def stored_tokenizer(stored: dict[str, Any]) -> SubwordVocabulary:
    """Return the vocabulary that `to_dict` described."""
    tokenizer = Tokenizer.from_str(json.dumps(stored["tokenizer"]))
    return SubwordVocabulary(tokenizer, stored["lowercase"], stored["kind"])


def _unknown_of(tokenizer: Tokenizer) -> int | None:
    """Return the id that the tokenizer gives to what it does not know; None where it knows everything."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("type") == "Unigram":
        found: int | None = model["unk_id"]
        return found
    unknown = model.get("unk_token")
    return None if unknown is None else tokenizer.token_to_id(unknown)


def _clean(line: str, lowercase: bool) -> str:
    return (line.lower() if lowercase else line).strip()


def _as_piece(text: str) -> str:
    """Return a text in the characters by which the tokenizer writes its bytes."""
    # Without the regex the text stays one piece, whatever it holds.
    ((piece, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return str(piece)
