"""Beam search with a reward for length: section 5.2 of the paper, whose score is NLL - ρ·length.

    score(Y) = log p(Y, end | X) + ρ·|Y|,   |Y| the number of tokens without the end token

The score ranks the candidates that have ended and decides when to stop; it never prunes. At each step the `width`
most probable expansions of all live hypotheses are kept, by log-probability alone; those that emit the end token leave
the beam, the others live on, and the places left empty are filled only by the expansions of the next step. So width 1
is greedy search (an end token that wins leaves nothing alive), and a width that every step's expansions fit into
enumerates all sequences. Filling the places at once, with the next best expansions, would break the first.

A row stops once no live hypothesis can still beat its `num_best` finished ones, or at its cap. The bound is exact, so
the result is that of running to the cap: log-probabilities only fall, and a hypothesis that ends within its cap has
between its present length and cap - 1 tokens. Equal scores rank in the order in which they ended, equal
log-probabilities by the earlier hypothesis and then the lower token.

Shapes: B examples, R of them still searching, W live hypotheses of each, S source tokens, T steps, V vocabulary.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import default_caps
from seqcritic.errors import NonFiniteError
from seqcritic.models.actor import Actor


@dataclass(frozen=True)
class Hypothesis:
    """One candidate of a search; unfinished means that it met the cap before its end token."""

    tokens: list[int]  # without the end token
    log_probability: float  # of the tokens and, if finished, the end token
    score: float  # log_probability + ρ · len(tokens)
    finished: bool


@torch.no_grad()
def beam_search(
    actor: Actor,
    sources: Tensor,
    source_mask: Tensor,
    width: int,
    length_reward: float = 0.0,
    caps: Tensor | None = None,
    num_best: int = 1,
) -> list[list[Hypothesis]]:
    """Return up to `num_best` hypotheses of each source [B, S], the best first.

    A row emits at most caps [B] tokens, its end token counted. What meets the cap unfinished ranks after all that
    finished, and only fills a list that would be too short. Memory grows with B · width · S.
    """
    caps = default_caps(source_mask) if caps is None else caps
    if width < 1 or num_best < 1 or bool((caps < 1).any()):
        raise ValueError("beam search needs a width, a number of hypotheses and caps of at least 1")
    encoded = actor.encode(sources, source_mask)
    memory, state = encoded, actor.start(encoded)
    rows = torch.arange(len(caps), device=caps.device)  # [R]
    precise = torch.float32 if caps.device.type == "mps" else torch.float64  # MPS has no float64
    log_probs = torch.zeros_like(caps, dtype=precise)[:, None]  # [R, W], -inf where nothing is alive
    tokens = sources.new_empty(len(caps), 1, 0)  # [R, W, T]
    results: list[list[Hypothesis]] = [[] for _ in range(len(caps))]
    to_beat = torch.full(caps.shape, -torch.inf, dtype=precise, device=caps.device)  # [B]

    for length in range(1, int(caps.max()) + 1):
        num_rows, num_live = log_probs.shape
        log_probs, parents, chosen = _expand(actor.logits(state), log_probs, width)
        parents += torch.arange(num_rows, device=rows.device)[:, None] * num_live  # now places in [R * W]
        tokens = torch.cat([tokens.flatten(0, 1)[parents], chosen[:, :, None]], dim=2)

        capped = caps[rows] == length
        closed = (log_probs > -torch.inf) & ((chosen == END) | capped[:, None])
        columns = (rows[closed.nonzero()[:, 0]], tokens[closed], log_probs[closed])
        for row, emitted, log_prob in zip(*(column.tolist() for column in columns), strict=True):
            insort(results[row], _close(emitted, log_prob, length_reward), key=_rank)
            del results[row][num_best:]
            if len(results[row]) == num_best:
                to_beat[row] = results[row][-1].score

        log_probs = log_probs.masked_fill(chosen == END, -torch.inf)
        going = ~capped & (_bound(log_probs, length_reward, length, caps[rows]) > to_beat[rows])
        if not bool(going.any()):
            break
        rows, log_probs, tokens = rows[going], log_probs[going], tokens[going]
        if log_probs.shape != (num_rows, num_live):
            memory = encoded.select(rows.repeat_interleave(log_probs.shape[1]))
        state = actor.step(memory, state.select(parents[going].flatten()), tokens[:, :, -1].flatten())
    return results


def _expand(logits: Tensor, log_probs: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, parent and token of the most probable expansions, each [R, width] or all there are.

    Only the `width` likeliest tokens of a hypothesis [R * W, V] can be among them. They are chosen by their logits, as
    in greedy search, and added to log_probs [R, W], which are float64: rounding must not make unequal sums equal.
    """
    likeliest = _highest(logits, width)  # [R * W, K]
    steps = torch.log_softmax(logits, dim=1).gather(1, likeliest)
    sums = (log_probs[:, :, None] + steps.view(*log_probs.shape, -1)).flatten(1)  # [R, W * K]
    best, places = sums.sort(dim=1, descending=True, stable=True)
    best, places = best[:, :width], places[:, :width]
    if bool(torch.isnan(best).any()):
        raise NonFiniteError("a log-probability of the searching actor is not a number")
    return best, places // likeliest.shape[1], likeliest.view(len(sums), -1).gather(1, places)


def _highest(values: Tensor, count: int) -> Tensor:
    """Return the places [N, count], or all V, of the highest values of [N, V] in falling order, equals by place."""
    count = min(count, values.shape[1])
    # topk leaves open which of equal values it returns; one value more shows where that matters.
    highest, places = values.topk(min(count + 1, values.shape[1]), dim=1)
    tied = (highest[:, count:] == highest[:, count - 1 : count]).any(dim=1)
    if bool(tied.any()):
        places[tied, :count] = values[tied].sort(dim=1, descending=True, stable=True).indices[:, :count]
    places = places[:, :count].sort(dim=1).values
    return places.gather(1, values.gather(1, places).sort(dim=1, descending=True, stable=True).indices)


def _bound(log_probs: Tensor, length_reward: float, length: int, caps: Tensor) -> Tensor:
    """Return the highest score [R] that any descendant of live hypotheses [R, W] of one length can end with."""
    reach = caps - 1 if length_reward > 0 else torch.full_like(caps, length)
    return log_probs.max(dim=1).values + length_reward * reach.to(log_probs.dtype)


def _close(emitted: list[int], log_prob: float, length_reward: float) -> Hypothesis:
    finished = emitted[-1] == END
    tokens = emitted[:-1] if finished else emitted
    return Hypothesis(tokens, log_prob, log_prob + length_reward * len(tokens), finished)


def _rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    return not hypothesis.finished, -hypothesis.score
