"""Embedded tokens through a linear map: by the tokens, or by the vocabulary where that is smaller."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import embedding as look_up
from torch.nn.functional import linear

from seqcritic.models.dropout import Dropout


def project_tokens(embedding: nn.Embedding, weight: Tensor, bias: Tensor, tokens: Tensor, dropout: Dropout) -> Tensor:
    """Return W e(y) + b, [..., F], for tokens of any shape and weight W [F, E].

    A vocabulary of characters is smaller than a batch: there the map is applied to the table, and rows of it looked up.
    """
    if embedding.num_embeddings < tokens.numel() and not dropout.active:
        return look_up(tokens, linear(embedding.weight, weight, bias))
    return linear(dropout(embedding(tokens)), weight, bias)
