"""The mathematics of the methods: tensors in, tensors out. Paper: Bahdanau et al. 2017, sections 2 and 3.

Every loss is a sum over the tokens and a mean over the sequences. `mask` is True on the tokens that count. What a
loss must not move is detached by its caller and checked by the tests.

These are the formulas as one reads them. What a loss asks of the whole vocabulary is computed by masked_losses.py,
which the tests hold to the formulas here.

Shapes: B sequences, T tokens, V vocabulary. Where no mask is asked for, rows [N] and [N, V] will do as well.
"""

from __future__ import annotations

import torch
from torch import Tensor


def mean_over_sequences(per_token: Tensor, mask: Tensor) -> Tensor:
    """Return the sum over the unmasked tokens of [B, T], averaged over the B sequences."""
    # `where`, not a product: outside the mask anything may stand, and 0 · ∞ is not 0. Divided by the sequences, not by
    # the tokens: the gradient of E[R] sums over the tokens of each.
    return torch.where(mask, per_token, 0.0).sum() / mask.shape[0]


def gather_chosen(per_action: Tensor, tokens: Tensor) -> Tensor:
    """Return the entries [B, T] of [B, T, V] that belong to the tokens [B, T]."""
    return per_action.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def likelihood_loss(log_probabilities: Tensor, references: Tensor, mask: Tensor) -> Tensor:
    """−Σ_t log p(y_t | Y_1..t-1, X). (Algorithm 1 prints dp for this term; it is d log p.)"""
    return -mean_over_sequences(gather_chosen(log_probabilities, references), mask)


def smoothed(token_log_probabilities: Tensor, mean_log: Tensor, smoothing: float) -> Tensor:
    """(1 − ε) log p(y) + ε/V Σ_a log p(a): the likelihood of a label of which ε is spread over all tokens."""
    return (1 - smoothing) * token_log_probabilities + smoothing * mean_log


def actor_critic_loss(probabilities: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """−Σ_t Σ_a p(a | Ŷ_1..t-1) Q̂(a; Ŷ_1..t-1): equation 8, the full sum over actions. Values are constants."""
    return -mean_over_sequences((probabilities * values).sum(dim=-1), mask)


def entropies(log_probabilities: Tensor) -> Tensor:
    """H(p) = −Σ_a p(a) log p(a), [B, T], of log-probabilities [B, T, V], in nats."""
    # Logits are finite, so that log p is, and p log p of an underflowed p is 0 as it should be.
    return -(log_probabilities.exp() * log_probabilities).sum(dim=-1)


def divergences(log_probabilities: Tensor, others: Tensor) -> Tensor:
    """KL(p ‖ p_0) = Σ_a p(a) (log p(a) − log p_0(a)), [B, T], of log-probabilities [B, T, V] of both, in nats."""
    return (log_probabilities.exp() * (log_probabilities - others)).sum(dim=-1)


def reinforce_loss(token_log_probabilities: Tensor, returns: Tensor, baselines: Tensor, mask: Tensor) -> Tensor:
    """−Σ_t log p(ŷ_t | Ŷ_1..t-1) (Σ_{τ≥t} r_τ − b_t): equation 9. Returns and baselines are constants.

    The estimate is unbiased for any baseline that does not depend on ŷ_t or what follows it.
    """
    return -mean_over_sequences(token_log_probabilities * (returns - baselines), mask)


def correction_loss(token_log_probabilities: Tensor, returns: Tensor, chosen_values: Tensor, mask: Tensor) -> Tensor:
    """−Σ_t log p(ŷ_t | Ŷ_1..t-1) (Σ_{τ≥t} r_τ − Q̂(ŷ_t; Ŷ_1..t-1)): what the critic's errors cost actor-critic.

    For samples of the actor itself, this and `actor_critic_loss` together have the true gradient, for any critic:
    E[d log p(ŷ_t) Q̂(ŷ_t)] = Σ_a dp(a) Q̂(a), so what the one owes to Q̂ the other takes back. Returns and values are
    constants.
    """
    return reinforce_loss(token_log_probabilities, returns, chosen_values, mask)


def clipped_loss(
    token_log_probabilities: Tensor, old_log_probabilities: Tensor, advantages: Tensor, mask: Tensor, clip: float
) -> Tensor:
    """−Σ_t min(ρ_t A_t, clip(ρ_t, 1 − ε, 1 + ε) A_t), ρ_t = p(ŷ_t) / p_old(ŷ_t): equation 7 of Schulman et al. 2017.

    Where p is p_old, the gradient is that of `reinforce_loss`. Old log-probabilities and advantages are constants.
    """
    # By the difference of logarithms: both probabilities may have underflowed to 0.
    ratios = (token_log_probabilities - old_log_probabilities).exp()
    # The minimum clips only what has gone with its advantage; a step back is never held.
    return -mean_over_sequences(torch.minimum(ratios * advantages, ratios.clamp(1 - clip, 1 + clip) * advantages), mask)


def group_advantages(returns: Tensor, divides_by_spread: bool) -> Tensor:
    """(R_m − mean_n R_n) / std_n R_n, [B, M], of the returns of M samples of an example, or the same undivided.

    Samples of equal returns have advantages of 0.
    """
    deviations = returns - returns.mean(dim=1, keepdim=True)
    if not divides_by_spread:
        return deviations
    spreads = deviations.square().mean(dim=1, keepdim=True).sqrt()
    # Equal returns may differ by rounding: divided by such a spread they would weigh as much as real differences.
    rounding = 1e-5 * returns.abs().amax(dim=1, keepdim=True)
    return torch.where(spreads > rounding, deviations / spreads, 0.0)


def generalised_advantages(rewards: Tensor, state_values: Tensor, mask: Tensor, decay: float) -> Tensor:
    """A_t = Σ_{l≥0} λ^l δ_{t+l}, δ_t = r_t + V_{t+1} − V_t, [B, T] (Schulman et al. 2016, without discount).

    `state_values` [B, T]: entry t is V *before* token t; after the last unmasked token it is 0. λ = 1 is the return to
    go less V_t, λ = 0 is δ_t.
    """
    # Zeros after the end: the last token's advantage is its own error alone.
    errors = torch.where(mask, rewards + _of_next_state(state_values, mask) - state_values, 0.0)
    following = torch.zeros_like(errors[:, 0])
    found = []
    # From the last token on, A_t = δ_t + λ A_{t+1}: each step needs the one behind it.
    for step in range(errors.shape[1] - 1, -1, -1):
        following = errors[:, step] + decay * following
        found.append(following)
    return torch.stack(found[::-1], dim=1)


def returns_to_go(rewards: Tensor, mask: Tensor) -> Tensor:
    """Σ_{τ≥t} r_τ, [B, T]: the Monte-Carlo target of the critic and the return of REINFORCE."""
    masked = torch.where(mask, rewards, 0.0)
    # A running sum from the end.
    return masked.flip(1).cumsum(1).flip(1)


def expected_values(probabilities: Tensor, values: Tensor) -> Tensor:
    """Σ_a p(a) Q(a), [B, T]: the value of the state before each token."""
    return (probabilities * values).sum(dim=-1)


def temporal_difference_targets(rewards: Tensor, state_values: Tensor, mask: Tensor) -> Tensor:
    """q_t = r_t + Σ_a p'(a | Ŷ_1..t) Q̂'(a; Ŷ_1..t), without the second term at the last unmasked token.

    `state_values` [B, T]: entry t is Σ_a p' Q̂' *before* token t, so the bootstrap of q_t is entry t + 1.
    """
    return rewards + _of_next_state(state_values, mask)


def soft_rewards(rewards: Tensor, state_entropies: Tensor, mask: Tensor, temperature: float) -> Tensor:
    """r_t + τ H(p'(· | Ŷ_1..t)), without the second term at the last unmasked token.

    `state_entropies` [B, T]: entry t is the entropy *before* token t. Values of these rewards are soft values: the
    entropy of a state counts for the token that leads to it.
    """
    return rewards + temperature * _of_next_state(state_entropies, mask)


def several_sample_targets(targets: Tensor, further_returns: Tensor, num_further: int) -> Tensor:
    """(q_t + Σ_{k=2..K} G_t^k) / K from targets and the *mean* of K − 1 further returns after the same prefix."""
    # The mean of the further returns counts for as many as it was made of, q_t for one.
    return (targets + num_further * further_returns) / (num_further + 1)


def _of_next_state(per_state: Tensor, mask: Tensor) -> Tensor:
    """Return entry t + 1 of [B, T] at position t, 0 where nothing follows."""
    # Masked before the shift: the last token gets the 0 of the first masked position, not what stands there.
    return torch.nn.functional.pad(torch.where(mask, per_state, 0.0)[:, 1:], (0, 1))


def variance_penalty(values: Tensor) -> Tensor:
    """C_t = Σ_a (Q̂(a) − mean_b Q̂(b))², [B, T]: equation 10, which keeps the values of rare actions down."""
    return (values - values.mean(dim=-1, keepdim=True)).square().sum(dim=-1)


def critic_loss(values: Tensor, tokens: Tensor, targets: Tensor, mask: Tensor, penalty_weight: float) -> Tensor:
    """Σ_t (Q̂(ŷ_t; Ŷ_1..t-1) − q_t)² + λ_C C_t. Targets are constants."""
    return penalised_error(gather_chosen(values, tokens), variance_penalty(values), targets, mask, penalty_weight)


def penalised_error(predicted: Tensor, penalties: Tensor, targets: Tensor, mask: Tensor, weight: float) -> Tensor:
    """Σ_t (predicted_t − q_t)² + λ_C C_t, from what was predicted and its penalties C, all [B, T]."""
    per_token = (predicted - targets).square()
    # Left out at λ_C = 0, not multiplied by it: then no gradient of penalties is made at all (fused_ops.py).
    return mean_over_sequences(per_token + weight * penalties if weight else per_token, mask)
