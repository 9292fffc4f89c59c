"""The bidirectional GRU encoder. Shapes: B examples, S tokens, E embedding, H hidden."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BidirectionalEncoder(nn.Module):
    """Read a sequence in both directions; annotation j is [forward state; backward state] at token j."""

    def __init__(self, embedding: nn.Embedding, hidden: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.recurrent = nn.GRU(embedding.embedding_dim, hidden, batch_first=True, bidirectional=True)
        self.size = 2 * hidden

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return annotations [B, S, 2H] of tokens [B, S]; padding is never read."""
        inputs = self.embedding(tokens)
        if bool(mask.all()):
            annotations: Tensor = self.recurrent(inputs)[0]
            return annotations
        packed = nn.utils.rnn.pack_padded_sequence(
            inputs, mask.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False
        )
        unpacked, _ = nn.utils.rnn.pad_packed_sequence(
            self.recurrent(packed)[0], batch_first=True, total_length=tokens.shape[1]
        )
        return torch.as_tensor(unpacked)
