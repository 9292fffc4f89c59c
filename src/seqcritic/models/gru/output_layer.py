"""The output layer, from state and context to one number for each token of the vocabulary, in three forms.

    own matrix               g(x) = W x + b
    through a chosen width   g(x) = W tanh(P x + a) + b
    tied                     g(x) = E P x + b,   E the decoder's embedding, or the actor's vectors

With a vocabulary of words the last product is most of an update; a narrower layer before it makes it as much cheaper.
What it is made of, inputs, weight and bias, can be asked for: where its result is known already, the gradient alone is
computed.

Shapes: F features, the size of [state; context], V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqcritic.models.gru.actors_vectors import TokenEmbedding
from seqcritic.models.products import linear


class LinearOutputLayer(nn.Linear):
    """An output layer with a matrix of its own."""

    @property
    def width(self) -> int:
        """The size of what the matrix is multiplied with."""
        return self.in_features

    def inputs(self, features: Tensor) -> Tensor:
        """Return what the matrix is multiplied with."""
        return features

    def rows(self, tokens: Tensor) -> Tensor:
        """Return the rows [C, F] of the matrix that belong to tokens [C]."""
        return self.weight.index_select(0, tokens)

    @torch.no_grad()
    def multiply(self, factor: float) -> None:
        """Multiply all outputs from now on."""
        # The last product is linear, and a tanh before it stays what it is.
        self.weight.mul_(factor)
        self.bias.mul_(factor)

    def forward(self, features: Tensor) -> Tensor:
        """Return outputs [..., V] of features [..., F]."""
        return linear(self.inputs(features), self.weight, self.bias)


class ProjectedOutputLayer(LinearOutputLayer):
    """An output layer through a layer of a chosen width, with a matrix of its own."""

    def __init__(self, size: int, width: int, num_tokens: int) -> None:
        super().__init__(width, num_tokens)
        self.projection = nn.Linear(size, width)

    def inputs(self, features: Tensor) -> Tensor:
        """Return what the matrix is multiplied with."""
        return torch.tanh(linear(features, self.projection.weight, self.projection.bias))


class TiedOutputLayer(nn.Module):
    """An output layer through the decoder's own embedding."""

    def __init__(self, size: int, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        # No bias a: E a is one number for each token, which b is already.
        self.projection = nn.Linear(size, embedding.embedding_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    @property
    def width(self) -> int:
        """The size of what the matrix is multiplied with."""
        return self.embedding.embedding_dim

    @property
    def weight(self) -> Tensor:
        """The embedding's matrix."""
        return self.embedding.weight

    def inputs(self, features: Tensor) -> Tensor:
        """Return what the matrix is multiplied with."""
        return linear(features, self.projection.weight)

    def rows(self, tokens: Tensor) -> Tensor:
        """Return the rows [C, E] of the matrix that belong to tokens [C]."""
        # Not `weight`: of an actor's vectors that would make all V one long for C of them.
        result: Tensor = self.embedding(tokens)
        return result

    @torch.no_grad()
    def multiply(self, factor: float) -> None:
        """Multiply all outputs from now on; the embedding stays."""
        # The decoder reads tokens by the same matrix: a factor on it would change what it reads.
        self.projection.weight.mul_(factor)
        self.bias.mul_(factor)

    def forward(self, features: Tensor) -> Tensor:
        """Return outputs [..., V] of features [..., F]."""
        return linear(self.inputs(features), self.weight, self.bias)


def build_output_layer(
    size: int, embedding: TokenEmbedding, tied: bool, width: int | None
) -> LinearOutputLayer | TiedOutputLayer:
    """Return the output layer of features of some size; `width` None: no layer before the matrix, or the tied one's
    own."""
    if tied:
        return TiedOutputLayer(size, embedding)
    if width is None:
        return LinearOutputLayer(size, embedding.num_embeddings)
    return ProjectedOutputLayer(size, width, embedding.num_embeddings)
