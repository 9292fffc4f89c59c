"""What every next token promises, known from the score, and values that are made with it.

The value of a token is what the whole prediction will score less what it scores already, and nothing after the end:

    Q(a) = E[R(Ŷ) | Ŷ_1..t-1 a] − R(Ŷ_1..t-1),   Q(end) = 0

A critic can learn from samples alone which tokens of thousands are right, but it need not. With
`critic.residual_on_lookahead`,

    Q̂(a) = Ψ(Ŷ_1..t-1 a) − R(Ŷ_1..t-1) + f(a),   Q̂(end) = 0

where Ψ is the lookahead, R if no more of the prediction is right (contracts/score.py), and the network f learns the
rest: how much more will be.

Shapes: B sequences, T tokens, N unmasked tokens, R references, U reference tokens, V vocabulary, C columns, H actor
state.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.score import Score
from seqcritic.methods.rollout import as_scorable, prefix_scores
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.values import Columns, Values


def token_lookaheads(
    score: Score,
    special: SpecialTokens,
    tokens: Tensor,
    mask: Tensor,
    batch: Batch,
    vocabulary_size: int,
    columns: Columns | None = None,
) -> Values:
    """Return Ψ − R of all tokens at the positions of tokens [B, T] where the mask [B, T] is True.

    All tokens of the references must be among the columns: they alone promise something of their own.
    """
    scorable = as_scorable(score, special, tokens, mask, batch)
    known = score.lookahead(scorable)
    assert known is not None, "settings refuse critic.residual_on_lookahead with a score that has no lookahead"
    earned = prefix_scores(score, special, tokens, mask, batch)[:, :-1, None]
    gains = Packed.of(known.to(tokens.device) - earned, mask)  # [N, R · U + 1]
    references = scorable.references.to(tokens.device)  # [B, R, U]
    found, width = references.flatten(1), vocabulary_size
    if columns is not None:
        lengths = scorable.reference_lengths[:, :, None]
        counted = torch.arange(references.shape[2], device=lengths.device) < lengths
        found, width = columns.columns_of(found), len(columns.ids) + 1
        assert bool((found < len(columns.ids))[counted.flatten(1)].all()), "references have columns"
    # After the end, where a padding token may lack a column, the gain is that of all others: the rest keeps its own.
    found = found[gains.positions // mask.shape[1]]  # [N, R · U]
    of_others = gains.rows[:, -1:].repeat(1, width)
    return Values(gains._replace(rows=of_others.scatter_(1, found, gains.rows[:, :-1])), columns)


def add_lookaheads(values: Values, lookaheads: Values, special: SpecialTokens) -> Values:
    """Return Q̂ from the network's values and the lookaheads of the same positions and columns."""
    rows = values.packed.rows + values.packed.align(lookaheads.packed)
    rows[:, values.columns_of(torch.tensor(special.end, device=rows.device))] = 0
    return values._replace(packed=values.packed._replace(rows=rows))


def all_values(
    critic: Critic,
    score: Score,
    special: SpecialTokens,
    batch: Batch,
    tokens: Tensor,
    mask: Tensor,
    states: Tensor,
    columns: Columns | None = None,
) -> Tensor:
    """Return a critic's Q̂ [B, T, V] at the positions of tokens [B, T], 0 outside the mask [B, T].

    With columns, those of a batch in training, each token without one has the value of the rest.
    """
    memory = critic.encode(batch.references, batch.reference_mask)
    values = critic.masked_values(memory, tokens, states, mask, columns)
    if critic.residual_on_lookahead:
        lookaheads = token_lookaheads(score, special, tokens, mask, batch, values.num_tokens, values.columns)
        values = add_lookaheads(values, lookaheads, special)
    return values.padded()
