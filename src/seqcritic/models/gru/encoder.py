"""The encoders: a bidirectional GRU, and the paper's "convolutional" window mean.

Shapes: B examples, S tokens, E embedding, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from seqcritic.models.gru.actors_vectors import TokenEmbedding
from seqcritic.models.gru.dropout import Masks, masked
from seqcritic.models.gru.lookup import project_both_ways, project_vectors
from seqcritic.models.gru.recurrence import gated_scan
from seqcritic.tensors.packing import gather_rows, pack, scatter_rows
from seqcritic.tensors.plain_loops import plain_loops


class BidirectionalEncoder(nn.Module):
    """Read a sequence in both directions; annotation j is [forward state; backward state] at token j.

    Every further layer reads the annotations of the one before it as that one reads embeddings.
    """

    def __init__(self, embedding: TokenEmbedding, hidden: int, num_layers: int = 1) -> None:
        super().__init__()
        self.embedding = embedding
        self.recurrent = nn.GRU(embedding.embedding_dim, hidden, batch_first=True, bidirectional=True)
        self.size = 2 * hidden
        # Behind the first layer, whose initial weights so stay those of an encoder with that one alone.
        self.deeper = nn.ModuleList(
            nn.GRU(self.size, hidden, batch_first=True, bidirectional=True) for _ in range(num_layers - 1)
        )
        self.between = self.size * len(self.deeper)

    def forward(self, tokens: Tensor, mask: Tensor, masks: Masks | None = None) -> Tensor:
        """Return annotations [B, S, 2H] of tokens [B, S]; padding is never read, its annotations are 0.

        `masks`: what dropout keeps of what each layer reads.
        """
        kept = None if masks is None else masks.encoder
        if plain_loops():
            annotations = read_plainly(self.recurrent, masked(self.embedding(tokens), kept), mask)
            for layer, own in self._further_layers(masks):
                annotations = read_plainly(layer, masked(annotations, own), mask)
            return annotations
        packing = pack(mask)
        rows = packing.positions // mask.shape[1]
        read = tokens.reshape(-1)[packing.positions]
        weights = _both_directions(self.recurrent)
        inputs = project_both_ways(self.embedding, *weights[:2], read, packing.mirrored, kept, rows)
        states = gated_scan(inputs, *weights[2:], packing)
        for layer, own in self._further_layers(masks):
            weights = _both_directions(layer)
            # Both directions of a token side by side; the second has its states in the order of its own reading.
            joined = torch.cat([states[0], gather_rows(states[1], packing.mirrored)], dim=1)
            inputs = project_vectors(*weights[:2], masked(joined, own, rows), packing.mirrored)
            states = gated_scan(inputs, *weights[2:], packing)
        # The second direction reads every row from its own last token; its states are every other row of H numbers.
        positions = torch.cat([2 * packing.positions, 2 * packing.positions[packing.mirrored] + 1])
        return scatter_rows(states.flatten(0, 1), positions, 2 * mask.numel()).view(*mask.shape, self.size)

    def _further_layers(self, masks: Masks | None) -> Iterator[tuple[nn.GRU, Tensor | None]]:
        """Yield each further layer with what dropout keeps of what it reads [B, 2H]; None: all of it."""
        for number, layer in enumerate(self.deeper):
            assert isinstance(layer, nn.GRU)
            yield layer, None if masks is None else masks.between[:, number * self.size : (number + 1) * self.size]


def _both_directions(recurrent: nn.GRU) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return weights [2, 3H, F] and biases [2, 3H] of the inputs, then weights [2, 3H, H] and biases of the states."""
    of_inputs, of_states, input_biases, state_biases = map(torch.stack, zip(*recurrent.all_weights, strict=True))
    return of_inputs, input_biases, of_states, state_biases


def read_plainly(recurrent: nn.GRU, inputs: Tensor, mask: Tensor) -> Tensor:
    """The reference: PyTorch's own GRU on inputs [B, S, E]."""
    # PyTorch wants the lengths on the CPU wherever the inputs are.
    packed = nn.utils.rnn.pack_padded_sequence(inputs, mask.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
    unpacked, _ = nn.utils.rnn.pad_packed_sequence(recurrent(packed)[0], batch_first=True, total_length=mask.shape[1])
    return torch.as_tensor(unpacked)


class WindowEncoder(nn.Module):
    """The paper's convolutional encoder: the mean over a window of 5 of word plus position embedding, no filters.

    (Rush et al. 2015, as Ranzato et al. 2015 use it.) At the edges the mean is over the tokens that exist. Positions
    past the table, longer than any sentence of the recipes, share its last row.
    """

    between = 0
    WIDTH = 5
    NUM_POSITIONS = 256

    def __init__(self, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.position = nn.Embedding(self.NUM_POSITIONS, embedding.embedding_dim)
        self.size = embedding.embedding_dim

    def forward(self, tokens: Tensor, mask: Tensor, masks: Masks | None = None) -> Tensor:
        """Return annotations [B, S, E] of tokens [B, S]; padding is never read.

        `masks`: what dropout keeps of each row's embeddings.
        """
        kept = None if masks is None else masks.encoder
        positions = torch.arange(tokens.shape[1], device=tokens.device).clamp(max=self.NUM_POSITIONS - 1)
        # Zeroed, so that padding adds nothing to the windows of the tokens beside it.
        inputs = masked(self.embedding(tokens) + self.position(positions), kept) * mask[:, :, None]
        sums = self._window_sum(inputs.transpose(1, 2)).transpose(1, 2)
        counts = self._window_sum(mask[:, None, :].to(inputs.dtype)).transpose(1, 2)
        # Windows that hold padding alone are 0 / 1 rather than 0 / 0.
        return sums / counts.clamp(min=1)

    def _window_sum(self, values: Tensor) -> Tensor:
        """Return sums [B, *, S] over the window around each position of values [B, *, S]."""
        # The pool counts the padding it adds at the edges, so its mean is always a sum over WIDTH.
        return self.WIDTH * nn.functional.avg_pool1d(values, self.WIDTH, stride=1, padding=self.WIDTH // 2)
