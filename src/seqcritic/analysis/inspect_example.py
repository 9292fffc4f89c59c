"""What actor and critic think at every step of one prediction, for any task.

Shapes: B is 1, S source tokens, U reference tokens, T steps, V vocabulary, H actor state, K candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.score import Score
from seqcritic.decoding.sampling import greedy
from seqcritic.errors import NonFiniteError
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.lookahead import all_values
from seqcritic.methods.rollout import score_tokens
from seqcritic.report import values as report

TokensOf = Callable[[Sequence[int]], list[str]]


@dataclass(frozen=True)
class Detokeniser:
    """How token ids, without an end token, become what a reader sees: one string a token, or a whole text."""

    source_tokens: TokensOf
    target_tokens: TokensOf
    target_text: Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class RewardScore:
    """The score that pays the rewards, its name for the reader, and whether every token is paid or only the last."""

    score: Score
    name: str
    shaping: bool


@torch.no_grad()
def inspect_example(
    actor: Actor,
    critic: Critic,
    example: Batch,
    detokeniser: Detokeniser,
    reward_score: RewardScore,
    prediction: Sequence[int] | None = None,
    top: int = 3,
    title: str = "",
    note: str = "",
) -> report.ValueTable:
    """Follow a prediction (token ids without an end token; None for the actor's greedy one) of one example.

    Each step holds the `top` tokens by value and by probability, and the attention by which they were found.
    """
    assert len(example) == 1, "one example at a time"
    # Scores are for the CPU; the networks read the example where the actor is.
    rewarded, example = example.to(torch.device("cpu")), example.to(actor.device)
    special = actor.special
    # A given prediction is a whole one: its end token is shown and valued with the others.
    tokens = _greedy_tokens(actor, example) if prediction is None else [*prediction, special.end[0]]
    chosen_T = torch.tensor(tokens, device=actor.device)
    memory = actor.encode(example.sources, example.source_mask)
    logits_BTV, states_BTH = actor.score(memory, chosen_T[None])
    probabilities_TV = torch.softmax(logits_BTV, dim=2)[0]
    # What is heard or seen has no tokens to show, and a prompt does not end.
    source = () if example.sources.dim() > 2 else _texts_of(example.sources, detokeniser.source_tokens, special)
    source = source if source[-1:] == (report.END,) else (*source, report.END)
    reference = _texts_of(example.references, detokeniser.target_tokens, special)
    source_attention = _shown(actor.attention(memory, chosen_T[None]), len(tokens), len(source))

    critic_memory = critic.read(example)
    everywhere = torch.ones_like(chosen_T[None], dtype=torch.bool)
    # Those of a batch of this one example; training chose them for many at once.
    columns = choose_columns(critic, special, example, probabilities_TV[:1])
    values_TV = all_values(
        critic, reward_score.score, special, example, chosen_T[None], everywhere, states_BTH, columns
    )[0]
    critic_attention = critic.attention(critic_memory, chosen_T[None], states_BTH)
    reference_attention = _shown(critic_attention, len(tokens), len(reference))
    if not bool((torch.isfinite(values_TV) & torch.isfinite(probabilities_TV)).all()):
        raise NonFiniteError("a value of the critic or a probability of the actor is not finite")

    rewards = _rewards(reward_score, tokens, rewarded, special)
    best_TK, likeliest_TK = _leaders(values_TV, top), _leaders(probabilities_TV, top)

    def candidate(step: int, token_id: int) -> report.Candidate:
        text = _text_of(token_id, detokeniser.target_tokens, special)
        return report.Candidate(text, values_TV[step, token_id].item(), probabilities_TV[step, token_id].item())

    steps = []
    for step, token_id in enumerate(tokens):
        chosen = candidate(step, token_id)
        steps.append(
            report.Step(
                token=chosen.token,
                probability=chosen.probability,
                value=chosen.value,
                reward=rewards[step],
                best=tuple(candidate(step, other) for other in best_TK[step]),
                likeliest=tuple(candidate(step, other) for other in likeliest_TK[step]),
                source_attention=source_attention[step],
                reference_attention=reference_attention[step],
            )
        )
    return report.ValueTable(
        source=source,
        reference=reference,
        steps=tuple(steps),
        prediction=detokeniser.target_text([token_id for token_id in tokens if token_id not in special.end]),
        score_name=reward_score.name,
        title=title,
        note=note,
    )


def _greedy_tokens(actor: Actor, example: Batch) -> list[int]:
    """Return the greedy prediction with its end token, or without one where the maximum length cut it."""
    tokens: list[int] = greedy(actor, example.sources, example.source_mask)[0].tolist()
    # Alone in its batch, what was cut fills the whole width: there is no padding behind it.
    kept = int(actor.special.up_to_end(torch.tensor([tokens])).sum())
    return tokens[:kept]


def _shown(attention: Tensor | None, num_steps: int, num_tokens: int) -> list[tuple[float, ...]]:
    """Return the attention [1, T, S] of each step; where it is not known, or not of these tokens, zeros."""
    # An actor of one's own may attend to other things than the tokens that are shown, as patches or frames.
    if attention is None or attention.shape[2] != num_tokens:
        return [(0.0,) * num_tokens] * num_steps
    return [tuple(weights) for weights in attention[0].tolist()]


def _rewards(reward_score: RewardScore, tokens: Sequence[int], example: Batch, special: SpecialTokens) -> list[float]:
    """Return the reward of each token [T], as in training."""
    predictions = torch.tensor([tokens])
    everything = torch.ones_like(predictions, dtype=torch.bool)
    rewards = score_tokens(reward_score.score, special, predictions, everything, example, reward_score.shaping)
    listed: list[float] = rewards[0].tolist()
    return listed


def _leaders(scores_TV: Tensor, top: int) -> list[list[int]]:
    """Return the ids of the `top` tokens of each step, the best first."""
    leaders: list[list[int]] = scores_TV.topk(min(top, scores_TV.shape[1]), dim=1).indices.tolist()
    return leaders


def _texts_of(tokens: Tensor, tokens_of: TokensOf, special: SpecialTokens) -> tuple[str, ...]:
    return tuple(_text_of(token_id, tokens_of, special) for token_id in tokens[0].tolist())


def _text_of(token_id: int, tokens_of: TokensOf, special: SpecialTokens) -> str:
    """Return the text of one token; asked for one by one, for vocabularies stop at the end token."""
    return report.END if token_id in special.end else tokens_of([token_id])[0]
