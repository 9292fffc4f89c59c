"""The codec of the spelling task: characters of a small alphabet, and lines cut into windows that a model takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import ENDS_AND_PADS, pad
from seqcritic.contracts.codec import Codec, Piece, register_codec
from seqcritic.contracts.score import ScoreOptions
from seqcritic.data.case_restoration import align, restore
from seqcritic.data.vocabulary import SPELLING_ALPHABET, Vocabulary, normalise_spelling, spelling_table
from seqcritic.data.words import UNKNOWN_WORD


@register_codec("spelling")
class SpellingCodec(Codec):
    """Text in the paper's alphabet, in windows of L characters."""

    # '#' stands for what the alphabet lacks and is a character as others are: kept, it is what the text has there.
    special: SpecialTokens = ENDS_AND_PADS

    def __init__(self, length: int, changes_length: bool = False) -> None:
        """`changes_length`: errors may drop and add characters, as those of typing do; the paper's replace them."""
        self.length = length
        self.changes_length = changes_length
        self.vocabulary = Vocabulary(SPELLING_ALPHABET)
        self.num_source_tokens = self.num_target_tokens = len(self.vocabulary)
        self._table = spelling_table()

    def content(self) -> dict[str, Any]:
        """Return the length of windows, and whether lengths change where they do; the alphabet is fixed."""
        return {"length": self.length} | ({"changes_length": True} if self.changes_length else {})

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the codec that `to_dict` described."""
        return cls(int(stored["length"]), bool(stored.get("changes_length", False)))

    def reads_like(self, other: Codec) -> bool:
        """Return whether the other has the alphabet too; the windows may be of another length."""
        return isinstance(other, SpellingCodec)

    def score_options(self) -> ScoreOptions:
        """Return that tokens are characters."""
        return ScoreOptions(unknown_word=UNKNOWN_WORD)

    def encode_sources(self, lines: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return lines of the alphabet, such as pieces of `cut`, as padded ids and their mask."""
        return pad(self.encode_references(lines))

    def encode_references(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of lines of the alphabet."""
        return [self.vocabulary.encode(line) for line in lines]

    def decode(self, ids: Sequence[int]) -> str:
        """Return ids as a string, up to the end token."""
        return "".join(self.vocabulary.decode(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return ids as characters, up to the end token."""
        return self.vocabulary.decode(ids)

    source_tokens = tokens

    def normalise(self, line: str) -> str:
        """Return a raw line in the alphabet."""
        return normalise_spelling(line, self._table)

    def cut(self, line: str) -> list[Piece]:
        """Cut a raw line, brought to the alphabet, into windows as long as those the model was trained on.

        Windows start at words where they can, half a window apart or less, and each comes with the part of it that
        counts: of what two share, the first two thirds count in the earlier one, because a model knows little of a
        window's first and last characters, and more of what follows others. So characters stand in windows of L but
        are taken once. A line shorter than L is repeated to fill its window, unless the model has seen lengths change.
        """
        text, length = self.normalise(line), self.length
        if not text:
            return []
        if len(text) <= length and self.changes_length:
            return [(text, slice(0, len(text)))]
        if len(text) <= length:
            # Repeated rather than padded: nearly all windows of training are full, and stay so if no length changes.
            filled = f"{text} " * (length // (len(text) + 1) + 1)
            return [(filled[:length] if len(text) < length else text, slice(0, len(text)))]
        starts = [0]
        while starts[-1] < len(text) - length:
            farthest = starts[-1] + max(1, length // 2)
            word = text.rfind(" ", starts[-1] + 1, farthest) + 1
            # The last window ends with the line, for which it may begin inside a word.
            starts.append(min(word or farthest, len(text) - length))
        # earlier + length − later characters are shared; two thirds into them the later window takes over.
        borders = [later + 2 * (earlier + length - later) // 3 for earlier, later in pairwise(starts)]
        kept = zip(starts, [0, *borders], [*borders, len(text)], strict=True)
        return [(text[start : start + length], slice(first - start, end - start)) for start, first, end in kept]

    def join(self, line: str, pieces: Sequence[Piece], predictions: Sequence[str], raw: bool) -> str:
        """Return the predictions of a line's windows as one line: the model's own text, or the line corrected by it."""
        written = [
            entry
            for (window, kept), prediction in zip(pieces, predictions, strict=True)
            for entry in align(window, prediction, by_place=not self.changes_length)[kept]
        ]
        return "".join(written) if raw else restore(line, written, self._table, self.changes_length)
