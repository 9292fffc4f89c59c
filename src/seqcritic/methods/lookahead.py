"""What is known of every next token before anything is learnt, and values that are made with it.

The value of a token is what the whole prediction will score less what it scores already, and nothing after the end:

    Q(a) = E[R(Ŷ) | Ŷ_1..t-1 a] − R(Ŷ_1..t-1),   Q(end) = 0

A critic can learn from samples alone which tokens of thousands are right, but it need not. With `critic.residual_on`,

    Q̂(a) = K(a) + f(a),   Q̂(end) = 0

where K is known and the network f learns the rest:

    lookahead            K(a) = Ψ(Ŷ_1..t-1 a) − R(Ŷ_1..t-1),   Ψ is R if no more of the prediction is right
    optimal-completion   K(a) = Q*(a) − Q*(end),   Q* is R if all that can be right is (optimal_values.py)

The first is too low, f learns how much more will be right; the second too high, f learns what the actor will spoil.

A score of texts has no lookahead. There Ψ and R in K are those of sentence BLEU on the ids, times R(Y) / BLEU(Y), so
that a perfect answer is worth the same by both; f learns whatever K lacks.

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
from seqcritic.methods.optimal_values import optimal_values
from seqcritic.methods.rollout import as_scorable, prefix_scores, whole_scores
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
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
    # Sentence BLEU counts ids, needs no text and has a lookahead: it says which tokens are right, whatever the score.
    telling = score if score.has_lookahead else BleuScore(special.unknown)
    scorable = as_scorable(telling, special, tokens, mask, batch)
    promised = telling.lookahead(scorable)
    assert promised is not None, "the score says that it has one"
    gained = promised.to(tokens.device) - prefix_scores(telling, special, tokens, mask, batch)[:, :-1, None]
    if telling is not score:
        # Else f would first have to learn the scale of another score before it learns anything of tokens.
        gained = gained * perfect_ratios(score, telling, special, batch)[:, None, None]
    gains = Packed.of(gained, mask)  # [N, R · U + 1]
    references = scorable.references.to(tokens.device)  # [B, R, U]
    found, width = references.flatten(1), vocabulary_size
    if columns is not None:
        lengths = scorable.reference_lengths[:, :, None]
        reference_mask = torch.arange(references.shape[2], device=lengths.device) < lengths
        found, width = columns.columns_of(found), len(columns.ids) + 1
        assert bool((found < len(columns.ids))[reference_mask.flatten(1)].all()), "references have columns"
    # After the end, where a padding token may lack a column, the gain is that of all others: the rest keeps its own.
    found = found[gains.positions // mask.shape[1]]  # [N, R · U]
    # All tokens begin with the gain of one that is in no reference; those that are get theirs over it. Where a token
    # stands in a reference twice, both entries are the same.
    of_others = gains.rows[:, -1:].repeat(1, width)
    return Values(gains._replace(rows=of_others.scatter_(1, found, gains.rows[:, :-1])), columns)


def perfect_ratios(score: Score, telling: Score, special: SpecialTokens, batch: Batch) -> Tensor:
    """Return R(Y) / R'(Y) [B] of the references by two scores; 0 where the second is 0, as of an empty one."""
    ours, theirs = (
        whole_scores(each, special, batch.references, batch.reference_mask, batch) for each in (score, telling)
    )
    return torch.where(theirs > 0, ours / theirs.clamp(min=1e-6), 0.0).to(torch.get_default_dtype())


def optimal_gains(
    score: Score,
    special: SpecialTokens,
    tokens: Tensor,
    mask: Tensor,
    batch: Batch,
    vocabulary_size: int,
    columns: Columns | None = None,
) -> Values:
    """Return Q*(a) − Q*(end) of all tokens at the positions of tokens [B, T] where the mask [B, T] is True."""
    assert isinstance(score, EditDistanceScore), "settings refuse critic.residual_on=optimal-completion with others"
    scorable = as_scorable(score, special, tokens, mask, batch)
    # Scores are computed on the CPU (rollout.py), and the columns go there with them.
    on_cpu = None if columns is None else columns._replace(ids=columns.ids.cpu())
    found = optimal_values(score, scorable, mask.cpu(), vocabulary_size, special, on_cpu)
    end = special.end[0] if on_cpu is None else int(on_cpu.columns_of(torch.tensor(special.end[0], device="cpu")))
    # Whoever ends here has earned what there is to earn: Q*(end) is R of the prefix.
    gains = (found.rows - found.rows[:, end, None]).to(tokens.device)
    return Values(Packed(gains, found.positions.to(tokens.device), found.shape), columns)


KNOWN = {"lookahead": token_lookaheads, "optimal-completion": optimal_gains}


def known_values(
    critic: Critic,
    score: Score,
    special: SpecialTokens,
    batch: Batch,
    repeats: int,
    tokens: Tensor,
    mask: Tensor,
    values: Values,
) -> Values | None:
    """Return the known part K of the values, with the columns of `values`; None if the critic has `residual_on: none`.

    There are `repeats` predictions in tokens [B, T] of each example of the batch.
    """
    if critic.residual_on == "none":
        return None
    # A copy of the batch is made only if there are several samples: it holds lists of texts.
    given = batch.repeat(repeats) if repeats > 1 else batch
    return KNOWN[critic.residual_on](score, special, tokens, mask, given, values.num_tokens, values.columns)


def add_known(values: Values, known: Values, special: SpecialTokens) -> Values:
    """Return Q̂ from the network's values and what is known at the same positions and columns."""
    rows = values.packed.rows + values.packed.align(known.packed)
    # By definition, not by learning: Q(end) = 0 is what ties a sum of rewards to the score of the whole.
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
    memory = critic.read(batch)
    values = critic.masked_values(memory, tokens, states, mask, columns)
    known = known_values(critic, score, special, batch, 1, tokens, mask, values)
    return (values if known is None else add_known(values, known, special)).padded()
