"""What the losses ask of packed logits and values: one number for each unmasked token, and the losses made of them.

The formulas are those of losses.py. They are computed by fused_ops.py, or, where the plain loops are asked
for, as they are written. Values of columns and rest give what their expansion to all tokens would.

Shapes: B sequences, T tokens, N unmasked tokens, V vocabulary, C columns. Results are [B, T], 0 where nothing counts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor
from seqcritic.decoding.sampling import Sample
from seqcritic.methods import fused_ops, losses
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.plain_loops import plain_loops
from seqcritic.tensors.values import Values

NEVER_SAID = -1e8  # below it a logit is that of a token which the actor suppresses


def token_log_probabilities(logits: Packed, tokens: Tensor) -> Tensor:
    """log p(y_t) of tokens [B, T]."""
    rows, chosen = logits.rows, logits.take(tokens)  # [N, V] and [N]
    if plain_loops():
        return logits.spread(losses.gather_chosen(torch.log_softmax(rows, dim=1), chosen))
    return logits.spread(fused_ops.token_log_probabilities(rows, chosen))


def sampled_log_probabilities(actor: Actor, features: Packed, sample: Sample) -> Tensor:
    """log p(ŷ_t) of what this very actor has just drawn: known from then, only the gradient is left to compute."""
    # Without a linear layer at its end there is no shortcut through the actor's last product.
    layer = actor.output_layer()
    if layer is None:
        return token_log_probabilities(actor.logits_of(features), sample.tokens)
    # Logits [N, V] are the largest tensor of an update and are not made at all here: the draw has left p and log p.
    inputs, tokens = layer.inputs(features.rows), features.take(sample.tokens)
    probabilities, known = features.align(sample.probabilities), features.take(sample.token_log_probabilities)
    return features.spread(
        fused_ops.known_log_probabilities(inputs, layer.weight, layer.bias, tokens, probabilities, known)
    )


def soft_values(logits: Packed, values: Values, temperature: float = 0.0) -> Tensor:
    """Σ_a p(a) Q(a) + τ H(p). Values are constants."""
    # Detached here for all callers, or the actor's loss would move the critic; aligned, as each packs in its own order.
    rows, constants, columns = logits.rows, logits.align(values.packed.detach()), values.columns
    if columns is not None:
        # Of columns and rest, nothing of the size [N, V] is made for the values.
        if not (plain_loops() or temperature):
            return logits.spread(fused_ops.column_values(rows, constants, columns.ids))
        constants = columns.expand(constants)  # the entropy needs a number for every token anyway
    if plain_loops():
        expected = losses.expected_values(torch.softmax(rows, dim=1), constants)
        if temperature:
            expected = expected + temperature * losses.entropies(torch.log_softmax(rows, dim=1))
        return logits.spread(expected)
    return logits.spread(fused_ops.soft_values(rows, constants, temperature))


def log_probabilities(logits: Packed) -> Packed:
    """log p(a) of all tokens."""
    return logits._replace(rows=torch.log_softmax(logits.rows, dim=1))


def divergences(logits: Packed, log_others: Packed) -> Tensor:
    """KL(p ‖ p_0) = −(Σ_a p(a) log p_0(a) + H(p)) from logits of p and constants log p_0, which are overwritten."""
    # Minus the soft value of Q = log p_0 at τ = 1: the fused sum serves, and its gradient by hand.
    if plain_loops():
        return -soft_values(logits, Values(log_others), 1.0)
    return -logits.spread(fused_ops.soft_values(logits.rows, logits.align(log_others), 1.0, overwrites=True))


def expected_values(probabilities: Packed, values: Values) -> Tensor:
    """Σ_a p(a) Q(a), of constants alone."""
    packed, columns = values.packed, values.columns
    rows = packed.rows
    if columns is None:
        return packed.spread(losses.expected_values(packed.align(probabilities), rows))
    # First the columns, then their order: the other way round all [N, V] would be copied.
    of_columns = packed.align(probabilities._replace(rows=probabilities.rows.index_select(1, columns.ids)))
    # Σ_c p(c) Q(c) + (1 − Σ_c p(c)) ρ, of differences to ρ, the rest, as in fused_ops.py
    rest = rows[:, -1]
    above_rest = losses.expected_values(of_columns, rows[:, :-1] - rest[:, None])
    return packed.spread(rest + above_rest)


def chosen_values_and_penalties(values: Values, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Q̂(ŷ_t) of tokens [B, T], and C_t, the variance penalty."""
    packed, columns = values.packed, values.columns
    if plain_loops():
        return values.of_tokens(tokens), packed.spread(losses.variance_penalty(values.expanded().rows))
    positions = values.columns_of(packed.take(tokens))
    # The rest stands for so many tokens and counts as often in the penalty.
    num_others = None if columns is None else columns.num_others
    of_tokens, spreads = fused_ops.chosen_and_spread(packed.rows, positions, num_others)
    return packed.spread(of_tokens), packed.spread(spreads)


def likelihood_loss(logits: Packed, references: Tensor, mask: Tensor) -> Tensor:
    """−Σ_t log p(y_t | Y_1..t-1, X) of references [B, T]."""
    return -losses.mean_over_sequences(token_log_probabilities(logits, references), mask)


def smoothed_loss(logits: Packed, chosen: Tensor, mask: Tensor, smoothing: float) -> Tensor:
    """−Σ_t (1 − ε) log p(y_t) + ε/V Σ_a log p(a), where log p(y_t) [B, T] is known.

    V counts the tokens that the actor may say: a share of the label for one that it never says would cost without end.
    """
    rows = logits.rows
    said = rows > NEVER_SAID
    # The mean of log p is that of the logits less what normalises them: no tensor of log-probabilities is made.
    mean = rows.mean(dim=1) if bool(said.all()) else torch.where(said, rows, 0.0).sum(dim=1) / said.sum(dim=1)
    mean_log = logits.spread(mean - torch.logsumexp(rows, dim=1))
    return -losses.mean_over_sequences(losses.smoothed(chosen, mean_log, smoothing), mask)
