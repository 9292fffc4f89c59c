"""What every next token promises, known from the score, and values that are made with it.

The value of a token is what the whole prediction will score less what it scores already, and nothing after the end:

    Q(a) = E[R(Ŷ) | Ŷ_1..t-1 a] − R(Ŷ_1..t-1),   Q(end) = 0

A critic can learn from samples alone which tokens of thousands are right, but it need not. With `critic.adds_outlook`,

    Q̂(a) = Ψ(Ŷ_1..t-1 a) − R(Ŷ_1..t-1) + f(a),   Q̂(end) = 0

where Ψ is the outlook, R if no more of the prediction is right (contracts/score.py), and the network f learns the rest:
how much more will be.

Shapes: B sequences, T tokens, N counted tokens, U reference tokens, V vocabulary, H actor state.
"""

from __future__ import annotations

from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.score import Score
from seqcritic.data.batch import Batch
from seqcritic.methods.rollout import as_scorable, prefix_scores
from seqcritic.tensors.packed import Packed


def token_outlooks(
    score: Score, special: SpecialTokens, tokens: Tensor, mask: Tensor, batch: Batch, vocabulary_size: int
) -> Packed:
    """Return Ψ − R [N, V] of all tokens at the places of tokens [B, T] where the mask [B, T] is True."""
    known = score.lookahead(as_scorable(score, special, tokens, mask, batch))
    assert known is not None, "settings refuse critic.adds_outlook with a score that has no lookahead"
    earned = prefix_scores(score, special, tokens, mask, batch)[:, :-1, None]
    gains = Packed.of(known.to(tokens.device) - earned, mask)  # [N, U + 1]
    references = batch.references[gains.places // mask.shape[1]]  # [N, U]
    of_others = gains.rows[:, -1:].repeat(1, vocabulary_size)
    return gains._replace(rows=of_others.scatter_(1, references, gains.rows[:, :-1]))


def add_outlooks(values: Packed, outlooks: Packed, special: SpecialTokens) -> Packed:
    """Return Q̂ [N, V] from the network's values and the outlooks of the same places."""
    rows = values.rows + values.align(outlooks)
    rows[:, list(special.end)] = 0
    return values._replace(rows=rows)


def all_values(
    critic: Critic, score: Score, special: SpecialTokens, batch: Batch, tokens: Tensor, mask: Tensor, states: Tensor
) -> Tensor:
    """Return a critic's Q̂ [B, T, V] at the places of tokens [B, T], 0 outside the mask [B, T]."""
    memory = critic.encode(batch.references, batch.reference_mask)
    values = critic.counted_values(memory, tokens, states, mask)
    if critic.adds_outlook:
        outlooks = token_outlooks(score, special, tokens, mask, batch, values.rows.shape[1])
        values = add_outlooks(values, outlooks, special)
    return values.padded()
