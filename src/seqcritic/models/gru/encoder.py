"""The encoders: a bidirectional GRU, and the paper's "convolutional" window mean.

Shapes: B examples, S tokens, E embedding, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqcritic.models.gru.actors_vectors import TokenEmbedding
from seqcritic.models.gru.dropout import masked
from seqcritic.models.gru.lookup import project_both_ways
from seqcritic.models.gru.recurrence import gated_scan, plain_loops
from seqcritic.tensors.packing import pack, scatter_rows


class BidirectionalEncoder(nn.Module):
    """Read a sequence in both directions; annotation j is [forward state; backward state] at token j."""

    def __init__(self, embedding: TokenEmbedding, hidden: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.recurrent = nn.GRU(embedding.embedding_dim, hidden, batch_first=True, bidirectional=True)
        self.size = 2 * hidden

    def forward(self, tokens: Tensor, mask: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return annotations [B, S, 2H] of tokens [B, S]; padding is never read, its annotations are 0.

        `kept` [B, E]: what dropout keeps of each row's embeddings.
        """
        if plain_loops():
            return read_plainly(self.recurrent, masked(self.embedding(tokens), kept), mask)
        packing = pack(mask)
        input_weights, state_weights, input_biases, state_biases = zip(*self.recurrent.all_weights, strict=True)
        read = tokens.reshape(-1)[packing.positions]
        inputs = project_both_ways(
            self.embedding,
            torch.stack(input_weights),
            torch.stack(input_biases),
            read,
            packing.mirrored,
            kept,
            packing.positions // mask.shape[1],
        )
        states = gated_scan(inputs, torch.stack(state_weights), torch.stack(state_biases), packing)
        # The second direction reads every row from its own last token; its states are every other row of H numbers.
        positions = torch.cat([2 * packing.positions, 2 * packing.positions[packing.mirrored] + 1])
        return scatter_rows(states.flatten(0, 1), positions, 2 * mask.numel()).view(*mask.shape, self.size)


def read_plainly(recurrent: nn.GRU, inputs: Tensor, mask: Tensor) -> Tensor:
    """The reference: PyTorch's own GRU on inputs [B, S, E]."""
    packed = nn.utils.rnn.pack_padded_sequence(inputs, mask.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
    unpacked, _ = nn.utils.rnn.pad_packed_sequence(recurrent(packed)[0], batch_first=True, total_length=mask.shape[1])
    return torch.as_tensor(unpacked)


class WindowEncoder(nn.Module):
    """The paper's convolutional encoder: the mean over a window of 5 of word plus position embedding, no filters.

    (Rush et al. 2015, as Ranzato et al. 2015 use it.) At the edges the mean is over the tokens that exist. Positions
    past the table, longer than any sentence of the recipes, share its last row.
    """

    WIDTH = 5
    NUM_POSITIONS = 256

    def __init__(self, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.position = nn.Embedding(self.NUM_POSITIONS, embedding.embedding_dim)
        self.size = embedding.embedding_dim

    def forward(self, tokens: Tensor, mask: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return annotations [B, S, E] of tokens [B, S]; padding is never read.

        `kept` [B, E]: what dropout keeps of each row's embeddings.
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device).clamp(max=self.NUM_POSITIONS - 1)
        inputs = masked(self.embedding(tokens) + self.position(positions), kept) * mask[:, :, None]
        sums = self._window_sum(inputs.transpose(1, 2)).transpose(1, 2)
        counts = self._window_sum(mask[:, None, :].to(inputs.dtype)).transpose(1, 2)
        return sums / counts.clamp(min=1)

    def _window_sum(self, values: Tensor) -> Tensor:
        """Return sums [B, *, S] over the window around each position of values [B, *, S]."""
        return self.WIDTH * nn.functional.avg_pool1d(values, self.WIDTH, stride=1, padding=self.WIDTH // 2)
