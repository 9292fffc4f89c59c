"""Actors that know nothing of ours: an LSTM without attention, and one whose state grows with what it has said.

Their begin, end and padding tokens are not 0, and the second has two tokens that end an answer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, SpecialTokens
from seqcritic.contracts.batch import Batch

NUM_TOKENS = 8
SIZE = 6
SPECIAL = SpecialTokens(end=(5,), padding=7, begin=6)
TWO_ENDS = SpecialTokens(end=(5, 0), padding=7, begin=6)


class LstmActor(Actor):
    """The mean of the source's embeddings starts an LSTM; it attends to nothing."""

    num_tokens, state_size, special, fixed_size_state = NUM_TOKENS, SIZE, SPECIAL, True

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(NUM_TOKENS, SIZE)
        self.cell = nn.LSTMCell(SIZE, SIZE)
        self.output = nn.Linear(SIZE, NUM_TOKENS)

    def encode(self, sources: Tensor, mask: Tensor, masks: None = None) -> Tensor:
        weights = mask[:, :, None].to(self.output.weight.dtype)
        return (self.embedding(sources) * weights).sum(dim=1) / weights.sum(dim=1)

    def start(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        begin = torch.full((len(memory),), self.special.begin)
        return self.cell(self.embedding(begin), (memory, torch.zeros_like(memory)))

    def step(self, memory: Tensor, state: tuple[Tensor, Tensor], tokens: Tensor) -> tuple[Tensor, Tensor]:
        return self.cell(self.embedding(tokens), state)

    def logits(self, state: tuple[Tensor, Tensor]) -> Tensor:
        return self.output(state[0])

    def view(self, state: tuple[Tensor, Tensor]) -> Tensor:
        return state[0]


class ListeningActor(LstmActor):
    """Its sources are no ids: frames of features, of which it starts with the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = nn.Linear(NUM_TOKENS, SIZE)

    def encode(self, sources: Tensor, mask: Tensor, masks: None = None) -> Tensor:
        weights = mask[:, :, None].to(sources.dtype)
        return (self.frames(sources) * weights).sum(dim=1) / weights.sum(dim=1)


class Past(NamedTuple):
    """Keys of all that was read and said, [B, t, E], and the last query's answer, [B, E]."""

    keys: Tensor
    answer: Tensor


class GrowingActor(Actor):
    """Attention over the source and over its own past: a key-value cache that grows by a row a token."""

    num_tokens, state_size, special = NUM_TOKENS, SIZE, TWO_ENDS

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(NUM_TOKENS, SIZE)
        self.position = nn.Parameter(torch.randn(40, SIZE))
        self.query, self.key = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.output = nn.Linear(2 * SIZE, NUM_TOKENS)

    def encode(self, sources: Tensor, mask: Tensor, masks: None = None) -> tuple[Tensor, Tensor]:
        positions = torch.arange(sources.shape[1])
        return self.key(self.embedding(sources) + self.position[positions]), mask

    def start(self, memory: tuple[Tensor, Tensor]) -> Past:
        keys, mask = memory
        begin = torch.full((len(mask),), self.special.begin)
        return self._attend(memory, keys[:, :0], begin)

    def step(self, memory: tuple[Tensor, Tensor], state: Past, tokens: Tensor) -> Past:
        return self._attend(memory, state.keys, tokens)

    def logits(self, state: Past) -> Tensor:
        return self.output(torch.cat([state.answer, state.keys[:, -1]], dim=1))

    def view(self, state: Past) -> Tensor:
        return state.answer

    def _attend(self, memory: tuple[Tensor, Tensor], past: Tensor, tokens: Tensor) -> Past:
        source, mask = memory
        token = self.embedding(tokens) + self.position[past.shape[1]]
        keys = torch.cat([past, self.key(token)[:, None]], dim=1)
        everything = torch.cat([source, keys], dim=1)
        seen = torch.cat([mask, mask.new_ones(keys.shape[:2])], dim=1)
        scores = (everything @ self.query(token)[:, :, None])[:, :, 0].masked_fill(~seen, -torch.inf)
        return Past(keys, (torch.softmax(scores, dim=1)[:, None] @ everything)[:, 0])


def make_actor(kind: type[Actor], seed: int = 0) -> Actor:
    """Return an actor in float64 with weights large enough for a lopsided policy."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return kind().double()


def pad(sequences: list[list[int]], special: SpecialTokens) -> tuple[Tensor, Tensor]:
    """Return sequences closed by the first end token, padded, and their mask."""
    width = max(map(len, sequences)) + 1
    rows = [[*row, special.end[0], *[special.padding] * (width - len(row) - 1)] for row in sequences]
    lengths = torch.tensor([len(row) + 1 for row in sequences])
    return torch.tensor(rows), torch.arange(width) < lengths[:, None]


def make_batch(special: SpecialTokens) -> Batch:
    """Return three pairs of different lengths."""
    sources, references = [[1, 2, 3, 4], [3], [2, 2]], [[4, 1, 2], [3, 3], [1, 2, 3, 4]]
    return Batch(*pad(sources, special), *pad(references, special))
