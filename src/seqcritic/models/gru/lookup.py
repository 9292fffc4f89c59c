"""Embedded tokens through a linear map: by the tokens, or by the vocabulary where that is smaller."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding as look_up

from seqcritic.models.gru.actors_vectors import TokenEmbedding
from seqcritic.models.gru.dropout import masked
from seqcritic.models.products import are_narrow, linear
from seqcritic.tensors.packing import gather_rows


def project_table(embedding: TokenEmbedding, weight: Tensor, bias: Tensor, num_tokens: int) -> Tensor | None:
    """Return W e(y) + b, [V, F], for all y, where that is less work than for so many tokens; None where it is not."""
    if embedding.num_embeddings < num_tokens:
        return linear(embedding.weight, weight, bias)
    return None


def project_tokens(
    embedding: TokenEmbedding,
    weight: Tensor,
    bias: Tensor,
    tokens: Tensor,
    mask: Tensor | None = None,
    rows: Tensor | None = None,
) -> Tensor:
    """Return W e(y) + b, [..., F], for tokens of any shape and weight W [F, E].

    A vocabulary of characters is smaller than a batch: there the map is applied to the table, and rows of it looked up.
    With a mask [B, E] some of e(y) is dropped: of tokens [B, …], or of tokens [N] of the given rows [N].
    """
    # A table has one row a token, and with a mask a token has another vector in every row.
    table = None if mask is not None else project_table(embedding, weight, bias, tokens.numel())
    return linear(masked(embedding(tokens), mask, rows), weight, bias) if table is None else look_up(tokens, table)


def project_both_ways(
    embedding: TokenEmbedding,
    weight: Tensor,
    bias: Tensor,
    tokens: Tensor,
    mirrored: Tensor,
    mask: Tensor | None,
    rows: Tensor,
) -> Tensor:
    """Return W_0 e(y) + b_0 and W_1 e(y') + b_1, [2, N, F], for tokens y [N], y' being y[mirrored], and W [2, F, E].

    `mask` [B, E], where there is one: what is kept of the embeddings of each row; `rows` [N]: the tokens' rows.
    """
    size = embedding.num_embeddings
    if size < len(tokens) and mask is None:
        tables = torch.baddbmm(bias[:, None], embedding.weight.expand(2, -1, -1), weight.transpose(1, 2))
        # One lookup for both: the second direction's table stands behind the first's.
        both = torch.cat([tokens, tokens[mirrored] + size])
        return look_up(both, tables.flatten(0, 1)).view(2, len(tokens), -1)
    return project_vectors(weight, bias, masked(embedding(tokens), mask, rows), mirrored)


def project_vectors(weight: Tensor, bias: Tensor, vectors: Tensor, mirrored: Tensor) -> Tensor:
    """Return W_0 x + b_0 and W_1 x' + b_1, [2, N, F], for vectors x [N, E], x' being x[mirrored], and W [2, F, E]."""
    if are_narrow(vectors, weight):
        # Both directions' products of every vector at once, then the second one's in its own order.
        ahead, back = linear(vectors, weight.flatten(0, 1), bias.flatten()).chunk(2, dim=1)
        return torch.stack([ahead, gather_rows(back, mirrored)])
    both = torch.stack([vectors, gather_rows(vectors, mirrored)])
    return torch.baddbmm(bias[:, None], both, weight.transpose(1, 2))
