"""An actor of a user's own, in a module that can be imported again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seqcritic import Actor, SpecialTokens


class LstmActor(Actor):
    """The mean of the source's embeddings starts an LSTM."""

    fixed_size_state = True

    def __init__(self, num_tokens: int, size: int) -> None:
        super().__init__()
        self.num_tokens, self.state_size = num_tokens, size
        self.special = SpecialTokens(end=(0,), padding=0, begin=num_tokens)
        self.embedding = nn.Embedding(num_tokens + 1, size)
        self.cell = nn.LSTMCell(size, size)
        self.output = nn.Linear(size, num_tokens)

    def spec(self) -> dict[str, Any]:
        return {"num_tokens": self.num_tokens, "size": self.state_size}

    def encode(self, sources: Tensor, mask: Tensor, masks: None = None) -> Tensor:
        weights = mask[:, :, None].float()
        return (self.embedding(sources) * weights).sum(dim=1) / weights.sum(dim=1)

    def start(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        begin = torch.full((len(memory),), self.num_tokens)
        return self.cell(self.embedding(begin), (memory, torch.zeros_like(memory)))

    def step(self, memory: Tensor, state: tuple[Tensor, Tensor], tokens: Tensor) -> tuple[Tensor, Tensor]:
        return self.cell(self.embedding(tokens), state)

    def logits(self, state: tuple[Tensor, Tensor]) -> Tensor:
        return self.output(state[0])

    def view(self, state: tuple[Tensor, Tensor]) -> Tensor:
        return state[0]


class UndescribedActor(LstmActor):
    """An actor that does not say how it is built."""

    def spec(self) -> None:
        return None


def shared_letters(prediction: str, reference: str) -> float:
    """Return the fraction of the reference's letters that stand at the same position of the prediction."""
    return sum(ours == theirs for ours, theirs in zip(prediction, reference, strict=False)) / max(len(reference), 1)
