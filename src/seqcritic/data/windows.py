"""Training text as windows of at most L characters, drawn without repetition.

The text lies in one array of character ids; a window is a start and a length in it, so millions of windows
cost five bytes each. The order of an epoch is one seeded permutation and the noise of a batch is drawn from a
generator seeded by its position: the only state is the number of examples consumed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch

from seqcritic.contracts.batch import Batch, pad
from seqcritic.data.corruption import corrupt, derive_seed
from seqcritic.data.typing_noise import TypingNoise
from seqcritic.data.vocabulary import END, Vocabulary, normalise_spelling, spelling_table

Codes = npt.NDArray[np.uint8]


class Windows:
    """All windows of a text: every sentence start, and every word start with L characters left if asked for."""

    def __init__(
        self,
        sentences: Iterable[str],
        vocabulary: Vocabulary,
        length: int,
        minimum_length: int,
        at_words: bool,
    ) -> None:
        self.length = length
        self._vocabulary = vocabulary
        self.num_characters = len(vocabulary) - 1  # ids 1 to this: the end is no character
        self.codes = _encode(sentences, vocabulary)
        space = vocabulary.ids[" "]
        # What stands before each character; before the first an end, 0, so that it begins a sentence.
        before = np.concatenate([np.zeros(1, np.uint8), self.codes[:-1]])
        left = _characters_left(self.codes)
        chosen = (before == END) & (left >= minimum_length)  # an empty sentence has nothing left
        if at_words:
            # Only full ones: the end of every sentence would else be seen once for each of its last words.
            chosen |= (before == space) & (left >= length)
        self.num_full = int((chosen & (left >= length)).sum())
        self.num_short = int(((before == END) & (left > 0) & (left < minimum_length)).sum())
        self.starts = np.flatnonzero(chosen).astype(np.int64)
        self.lengths = np.minimum(left[self.starts], length).astype(np.uint8)
        # A last window may be shorter than L: its columns past the end of the text are masked, but must exist.
        self.codes = np.concatenate([self.codes, np.zeros(length, np.uint8)])
        self._order: tuple[int, int, npt.NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def fingerprint(self) -> str:
        """Return a short hash of the text and the windows chosen in it."""
        digest = hashlib.blake2b(digest_size=8)
        digest.update(self.codes.tobytes())
        digest.update(self.starts.tobytes())
        digest.update(self.lengths.tobytes())
        return digest.hexdigest()

    def order(self, seed: int, epoch: int) -> npt.NDArray[np.int64]:
        """Return the permutation of all windows that one epoch follows."""
        if self._order is None or self._order[:2] != (seed, epoch):
            generator = np.random.default_rng(derive_seed(seed, "order", epoch))
            self._order = (seed, epoch, generator.permutation(len(self)))
        return self._order[2]

    def batch(self, position: int, size: int, seed: int, noise: float | TypingNoise) -> Batch:
        """Return the examples position..position+size-1 of the seeded stream, freshly corrupted."""
        chosen = np.empty(size, np.int64)
        filled = 0
        while filled < size:  # a batch may go over the end of an epoch, or of several
            epoch, offset = divmod(position + filled, len(self))
            selected = self.order(seed, epoch)[offset : offset + size - filled]
            chosen[filled : filled + len(selected)] = selected
            filled += len(selected)
        # The position goes on from epoch to epoch: a window that comes again has other noise.
        generator = torch.Generator().manual_seed(derive_seed(seed, "noise", position))
        return self.examples(chosen, noise, generator)

    def examples(self, chosen: npt.NDArray[np.int64], noise: float | TypingNoise, generator: torch.Generator) -> Batch:
        """Return the chosen windows as a batch of (corrupted, clean) pairs; `noise` is the paper's η, or typing's."""
        lengths = torch.from_numpy(self.lengths[chosen].astype(np.int64))
        width = int(lengths.max())
        columns = torch.arange(width + 1)
        codes = self.codes[self.starts[chosen][:, None] + np.arange(width)]  # [B, width], beyond short windows too
        clean = torch.from_numpy(codes.astype(np.int64))
        inside = columns[:width] < lengths[:, None]
        mask = columns <= lengths[:, None]
        closed = _close(clean, inside)  # [B, width + 1]
        if isinstance(noise, TypingNoise):
            # Such noise changes lengths and goes by letters, one line after the other.
            draws = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
            lines = ["".join(self._vocabulary.decode(row)) for row in closed.tolist()]
            noisy = [self._vocabulary.encode(noise.corrupt(line, draws)) for line in lines]
            return Batch(*pad(noisy), closed, mask)
        # Closed after it was corrupted, which has put characters in the place of ends too.
        return Batch(_close(corrupt(clean, noise, self.num_characters, generator), inside), mask, closed, mask)


def _close(tokens: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """Blank what lies outside the window and append one column of end tokens."""
    closed = torch.where(inside, tokens, END)
    return torch.cat([closed, torch.full_like(closed[:, :1], END)], dim=1)


def _encode(sentences: Iterable[str], vocabulary: Vocabulary) -> Codes:
    """Return the normalised sentences as one array of ids, an end token after each."""
    table = spelling_table()
    joined = "\n".join(normalise_spelling(sentence, table) for sentence in sentences) + "\n"
    ids = np.zeros(256, np.uint8)  # what has no id, as the line breaks here, is an end
    for character, token_id in vocabulary.ids.items():
        ids[ord(character)] = token_id
    return ids[np.frombuffer(joined.encode("ascii"), np.uint8)]


def _characters_left(codes: Codes) -> npt.NDArray[np.signedinteger]:
    """Return for each position the number of characters from it to the next end token."""
    # Half the memory where positions fit: a text of a gigabyte is read on a laptop too.
    kind = np.int32 if len(codes) < 2**31 else np.int64
    ends = np.flatnonzero(codes == END).astype(kind)
    # An end token follows every sentence, so that each end serves the positions since the one before it.
    next_end = np.repeat(ends, np.diff(ends, prepend=kind(-1)))
    left: npt.NDArray[np.signedinteger] = next_end - np.arange(len(codes), dtype=kind)
    return left
