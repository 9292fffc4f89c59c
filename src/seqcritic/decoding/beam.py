"""Beam search with a reward for length: section 5.2 of the paper, whose score is NLL - ρ·length.

    score(Y) = log p(Y, end | X) + ρ·|Y|,   |Y| the number of tokens without the end token

The score ranks the candidates that have ended and decides when to stop; it never prunes. At each step the `width`
most probable expansions of all live hypotheses are kept, by log-probability alone; those that emit the end token leave
the beam, the others live on, and the positions left empty are filled only by the expansions of the next step. So width
1 is greedy search (an end token that wins leaves nothing alive), and a width that every step's expansions fit into
enumerates all sequences.

With `refill` the positions are filled at once, by the next best expansions that do not end, so `width` hypotheses live
on at every step; and what meets the maximum length unfinished ranks by its score like what has ended. That is the
search of Hugging Face's `generate(num_beams=width, length_penalty=0, early_stopping="never")`, whose score has no ρ.
Without ρ width 1 is greedy search here too: what lives on after an end token that won is less probable than what has
ended.

A row stops once no live hypothesis can still beat its `num_best` finished ones, or at its maximum length. The bound is
exact, so the result is that of running to the maximum length: log-probabilities only fall, and a hypothesis that ends
within its maximum length has between its present length and maximum length - 1 tokens. Equal scores rank in the order
in which they ended, equal log-probabilities by the earlier hypothesis and then the lower token.

Shapes: B examples, R of them still searching, W live hypotheses of each, S source tokens, T steps, V vocabulary.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.decoding.top_k import expand_top_k


@dataclass(frozen=True)
class Hypothesis:
    """One candidate of a search; unfinished means that it met the maximum length before its end token."""

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
    maximum_lengths: Tensor | None = None,
    num_best: int = 1,
    refill: bool = False,
) -> list[list[Hypothesis]]:
    """Return up to `num_best` hypotheses of each source [B, S], the best first; see `search_memory`."""
    maximum_lengths = actor.limits.of(source_mask) if maximum_lengths is None else maximum_lengths
    return search_memory(
        actor, actor.encode(sources, source_mask), maximum_lengths, width, length_reward, num_best, refill
    )


@torch.no_grad()
def search_memory(
    actor: Actor,
    memory: Memory,
    maximum_lengths: Tensor,
    width: int,
    length_reward: float = 0.0,
    num_best: int = 1,
    refill: bool = False,
) -> list[list[Hypothesis]]:
    """Return up to `num_best` hypotheses of each encoded source, the best first.

    A row emits at most maximum_lengths [B] tokens, its end token counted. What meets the maximum length unfinished
    ranks after all that finished, and only fills a list that would be too short; with `refill` it ranks by its score.
    Memory grows with B · width · S.
    """
    if width < 1 or num_best < 1 or bool((maximum_lengths < 1).any()):
        raise ValueError("beam search needs a width, a number of hypotheses and maximum lengths of at least 1")
    search = actor.searcher(memory, width)
    live = search.start()
    rows = torch.arange(len(maximum_lengths), device=maximum_lengths.device)  # [R]
    precise = torch.float32 if maximum_lengths.device.type == "mps" else torch.float64  # MPS has no float64
    log_probs = torch.zeros_like(maximum_lengths, dtype=precise)[:, None]  # [R, W], -inf where nothing is alive
    trail: list[tuple[Tensor, Tensor]] = []  # of each step: parents, as positions in [R * W] before it, and tokens
    results: list[list[Hypothesis]] = [[] for _ in range(len(maximum_lengths))]
    to_beat = torch.full(maximum_lengths.shape, -torch.inf, dtype=precise, device=maximum_lengths.device)  # [B]
    rank = _rank_by_score if refill else _rank
    # Each hypothesis can end in so many ways: of so many expansions at least `width` do not end.
    num_kept = width * (1 + len(actor.special.end)) if refill else width

    for length in range(1, int(maximum_lengths.max()) + 1):
        num_rows, num_live = log_probs.shape
        log_probs, parents, chosen = expand_top_k(search.logits(live), log_probs, num_kept)
        # From positions within an example to positions in [R * W], as `step` takes them.
        parents += torch.arange(num_rows, device=rows.device)[:, None] * num_live
        capped = maximum_lengths[rows] == length
        ended = actor.special.is_end(chosen)
        closed = (log_probs > -torch.inf) & (ended | capped[:, None])
        closed[:, width:] = False  # what only refills
        if bool(closed.any()):
            emitted = _trace(trail, parents[closed], chosen[closed])
            columns = (rows[closed.nonzero()[:, 0]], emitted, ended[closed], log_probs[closed])
            for row, tokens, finished, log_prob in zip(*(column.tolist() for column in columns), strict=True):
                # Sorted as they come: the worst of the best is what the rest of the search has to beat.
                insort(results[row], _close(tokens, finished, log_prob, length_reward), key=rank)
                del results[row][num_best:]
                if len(results[row]) == num_best:
                    to_beat[row] = results[row][-1].score

        if refill:
            going_on = ended.sort(dim=1, stable=True).indices[:, :width]  # what has not ended first, the order kept
            log_probs, parents, chosen, ended = (
                field.gather(1, going_on) for field in (log_probs, parents, chosen, ended)
            )
        log_probs = log_probs.masked_fill(ended, -torch.inf)
        # A row ends as soon as no descendant can enter its list, which changes no result and saves steps.
        going = ~capped & (_bound(log_probs, length_reward, length, maximum_lengths[rows]) > to_beat[rows])
        if not bool(going.all()):
            if not bool(going.any()):
                break
            rows, log_probs, parents, chosen = rows[going], log_probs[going], parents[going], chosen[going]
            search.keep(going)
        trail.append((parents.flatten(), chosen.flatten()))
        live = search.step(live, *trail[-1])
    return results


def _trace(trail: list[tuple[Tensor, Tensor]], parents: Tensor, tokens: Tensor) -> Tensor:
    """Return all tokens [N, T] of hypotheses, given the positions of their parents and their last tokens, both [N]."""
    columns = [tokens]
    for before, emitted in reversed(trail):
        columns.append(emitted[parents])
        parents = before[parents]
    return torch.stack(columns[::-1], dim=1)


def _bound(log_probs: Tensor, length_reward: float, length: int, maximum_lengths: Tensor) -> Tensor:
    """Return the highest score [R] that any descendant of live hypotheses [R, W] of one length can end with."""
    # Log-probabilities only fall; with a positive reward the longest answer allowed could still gain that much.
    reach = maximum_lengths - 1 if length_reward > 0 else torch.full_like(maximum_lengths, length)
    return log_probs.max(dim=1).values + length_reward * reach.to(log_probs.dtype)


def _close(emitted: list[int], finished: bool, log_prob: float, length_reward: float) -> Hypothesis:
    # The end token is in the log-probability and not in the answer, nor in its length.
    tokens = emitted[:-1] if finished else emitted
    return Hypothesis(tokens, log_prob, log_prob + length_reward * len(tokens), finished)


def _rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    return not hypothesis.finished, -hypothesis.score


def _rank_by_score(hypothesis: Hypothesis) -> tuple[bool, float]:
    return False, -hypothesis.score
