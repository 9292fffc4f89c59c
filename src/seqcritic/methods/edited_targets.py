"""Drawing sequences with a probability that falls with their edit distance to a reference, exactly.

    q(Ŷ | Y) ∝ w^d(Ŷ, Y)   over all Ŷ of at most 2|Y| + 10 tokens,   w = exp(−(1 + ln v) / τ)

v is the number of tokens without the end token, which are numbered 1..v. Sequences at a distance are too many to list
and have no closed count, but edit scripts have: each reference token is kept after some insertions (none mostly),
replaced, or deleted, and more insertions may follow the last one. With r = w (v − 1) the scripts of a token weigh

    kept after i insertions of other tokens: r^i, in all 1 / (1 − r)       replaced: r       deleted: w

and those of the end (w v)^i, so a script with e edits has weight w^e, and one is drawn token by token. Insertions
stand before kept tokens only, and differ from them: this leaves every sequence a shortest script, and most of them no
other. A sequence that several scripts make would come too often by A(Ŷ) / w^d, A the sum of their weights. It is
therefore kept with probability w^d / A(Ŷ) and otherwise drawn again. That makes the distribution exact.

Shapes: B references, U their tokens, N most tokens of a drawn sequence.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seqcritic.draws import draw_uniform, fork
from seqcritic.scores.edit_distance import prefix_distances

EXTRA_TOKENS = 10
NOTHING = 0  # what stands after a sequence


def edit_weight(num_tokens: int, temperature: float) -> float:
    """Return w, by which each edit makes a sequence less likely; 0 at temperature 0."""
    # τ is at most 1, so that w ≤ 1 / (e v): r and w v, the ratios of geometric sums, are at most 1 / e.
    return math.exp(-(1 + math.log(num_tokens)) / temperature) if temperature > 0 else 0.0


def draw_edited(
    references: Tensor, lengths: Tensor, num_tokens: int, temperature: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return sequences [B, N], 0 after their ends, and their lengths [B], one drawn for each reference [B, U].

    Lengths count tokens without the end token; all tokens are in 1..num_tokens. The generator moves by one draw; what
    a row becomes depends on its own numbers only.
    """
    device, num_rows = references.device, len(lengths)
    # On the CPU, whose random numbers they are (draws.py): what is drawn is the same on every device.
    references, lengths = references.cpu(), lengths.cpu()
    weight = edit_weight(num_tokens, temperature)
    limits = 2 * lengths + EXTRA_TOKENS
    width = int(limits.max())
    tokens = torch.full((num_rows, width), NOTHING, device="cpu")
    drawn_lengths = torch.zeros_like(lengths)
    # How often rows are drawn again is chance: the caller's generator moves by one draw all the same.
    own = fork(generator)
    rows = torch.arange(num_rows, device="cpu")
    while len(rows) > 0:
        # Numbers for all rows in every round, used or not: a row's do not depend on which others were accepted.
        kinds, runs = (draw_uniform(own, references.shape[1] + 1, num_rows).t()[rows] for _ in range(2))
        symbols = draw_uniform(own, width, num_rows).t()[rows]
        chances = draw_uniform(own, 1, num_rows)[0, rows]
        edited, sizes = _edit(references[rows], lengths[rows], kinds, runs, symbols, num_tokens, weight)
        # Too long ones are refused whatever their excess; clamped, they still index the table that finds it.
        fits = sizes <= limits[rows]
        sizes = sizes.clamp(max=width)
        excess = _log_excess(edited, sizes, references[rows], lengths[rows], num_tokens, weight)
        accepted = fits & (chances < torch.exp(-excess))
        tokens[rows[accepted]], drawn_lengths[rows[accepted]] = edited[accepted], sizes[accepted]
        rows = rows[~accepted]
    tokens = tokens[:, : int(drawn_lengths.max())]
    return tokens.to(device), drawn_lengths.to(device)


def _edit(
    references: Tensor, lengths: Tensor, kinds: Tensor, runs: Tensor, symbols: Tensor, num_tokens: int, weight: float
) -> tuple[Tensor, Tensor]:
    """Apply one script to each reference; return [B, N] and the lengths, which may exceed N.

    Uniform numbers choose what happens to each token and how many insertions precede it (`kinds`, `runs` [B, U + 1],
    the last entry that counts being the end's), and the symbols [B, N] that are inserted or replace.
    """
    positions = torch.arange(references.shape[1] + 1, device="cpu")
    here, at_end = positions < lengths[:, None], positions == lengths[:, None]
    other = weight * (num_tokens - 1)  # r
    # Scaled to the sum of the three weights: below w deleted, the next r replaced, the rest kept.
    kinds = kinds * (1 / (1 - other) + other + weight)
    deleted = here & (kinds < weight)
    replaced = here & ~deleted & (kinds < weight + other)
    kept = here & ~deleted & ~replaced
    # Before a kept token it is an inserted one of v − 1, at the end of all v.
    insertions = torch.where(kept, _geometric(runs, other), 0) + torch.where(
        at_end, _geometric(runs, weight * num_tokens), 0
    )
    ends = (insertions + (kept | replaced)).cumsum(dim=1)  # [B, U + 1], where what stands for a token ends
    position = torch.arange(symbols.shape[1], device="cpu")
    # The first reference token whose part ends behind a position: the one that it belongs to, or that it stands before.
    owner = torch.searchsorted(ends, position.expand_as(symbols).contiguous(), right=True)
    # Behind the whole sequence there is no owner; what is made of it there is overwritten at last.
    owner = torch.minimum(owner, lengths[:, None])
    beside = torch.nn.functional.pad(references, (0, 1), value=NOTHING).gather(1, owner)
    is_end = owner == lengths[:, None]
    # 1..v without the owner's token: from it on, numbers move up by one.
    others = 1 + (symbols * (num_tokens - 1)).long()
    fresh = torch.where(is_end, 1 + (symbols * num_tokens).long(), others + (others >= beside).long())
    # A kept token stands last in its part, behind what was inserted before it.
    stays = kept.gather(1, owner) & (position == ends.gather(1, owner) - 1)
    edited = torch.where(stays, beside, fresh)
    return torch.where(position < ends[:, -1:], edited, NOTHING), ends[:, -1]


def _geometric(uniform: Tensor, ratio: float) -> Tensor:
    """Return whole numbers with P(i) = (1 − ratio) ratio^i from numbers in [0, 1)."""
    if ratio <= 0:
        return torch.zeros_like(uniform, dtype=torch.int64)
    # By inverting P(≥ i) = ratio^i; 1 − u is never 0.
    return torch.floor(torch.log1p(-uniform) / math.log(ratio)).long()


def _log_excess(
    edited: Tensor, sizes: Tensor, references: Tensor, lengths: Tensor, num_tokens: int, weight: float
) -> Tensor:
    """Return ln A(Ŷ) − d(Ŷ, Y) ln w, [B]: how much too often the scripts make each sequence.

    `settled` and `pending` [B, U + 1] are ln of the weight of all scripts that make the first n tokens from the first
    u of the reference, by whether insertions stand last. Deletions go along a row, as a running sum.
    """
    if weight == 0:
        return torch.zeros(len(sizes), dtype=torch.float64, device="cpu")
    cost = math.log(weight)
    positions = torch.arange(references.shape[1] + 1, device="cpu")
    nothing = torch.full((len(sizes), len(positions)), -torch.inf, dtype=torch.float64, device="cpu")
    deletions = cost * positions.double()  # whole numbers times a float would be float32
    settled, pending = deletions.expand_as(nothing), nothing
    # What the next insertion must differ from; nothing at the reference's end.
    beside = torch.where(
        positions < lengths[:, None], torch.nn.functional.pad(references, (0, 1), value=NOTHING), NOTHING
    )
    totals = [torch.logaddexp(settled, pending)]
    for step in range(int(sizes.max())):
        token = edited[:, step, None]
        same = token == beside
        before = torch.logaddexp(settled, pending)
        # Kept from both, but replaced only where no insertions stand last, for these come before kept tokens alone.
        moved = torch.where(same, before, cost + settled)[:, :-1]  # kept, or replaced
        moved = torch.cat([nothing[:, :1], moved], dim=1)
        # What is inserted differs from the token it stands before; at the reference's end, from none.
        pending = torch.where(same, -torch.inf, cost + before)
        # Deletions after this token: from any place before, at w for each step along the row.
        settled = torch.logcumsumexp(moved - deletions, dim=1) + deletions
        totals.append(torch.logaddexp(settled, pending))
    rows = torch.arange(len(sizes), device="cpu")
    total = torch.stack(totals, dim=1)[rows, sizes, lengths]
    distances = prefix_distances(edited, references, lengths)[rows, sizes]
    return total - cost * distances.double()
