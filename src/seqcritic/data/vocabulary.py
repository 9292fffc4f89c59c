"""Tokens and their ids. Id 0 is always the end token, which also pads; of texts, 1 is the unknown token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

END = 0
END_TEXT = "<end>"
UNKNOWN = 1
UNKNOWN_TEXT = "<unk>"
NUM_SPECIAL = 2
SPELLING_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789,.!? #"
OTHER_CHARACTER = "#"


class Vocabulary:
    """A fixed list of tokens; token k of the list has the id k + 1."""

    def __init__(self, tokens: Sequence[str]) -> None:
        if len(set(tokens)) != len(tokens):
            raise ValueError("a vocabulary lists every token once")
        self.tokens = list(tokens)
        self.ids = {token: token_id for token_id, token in enumerate(self.tokens, start=1)}

    def __len__(self) -> int:
        """Count the tokens, the end token included."""
        return len(self.tokens) + 1

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of the tokens, without an end token."""
        return [self.ids[token] for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens up to the first end token."""
        decoded: list[str] = []
        for token_id in ids:
            if token_id == END:
                break
            decoded.append(self.tokens[token_id - 1])  # 0 is the end
        return decoded


class _Spelling(dict[int, str]):
    """A translation table for str.translate that maps all it does not know to '#'."""

    def __missing__(self, code: int) -> str:
        # A line break or a tab parts words as a space does.
        return " " if chr(code).isspace() else OTHER_CHARACTER


def spelling_table() -> dict[int, str]:
    """Return the table that brings lower-cased text to the paper's alphabet."""
    return _Spelling({ord(character): character for character in SPELLING_ALPHABET})


def normalise_spelling(text: str, table: dict[int, str]) -> str:
    """Lower-case, map to the alphabet (everything else becomes '#'), and join runs of white space to one space."""
    return " ".join(text.lower().translate(table).split())
