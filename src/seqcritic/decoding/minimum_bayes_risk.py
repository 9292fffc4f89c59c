"""Minimum Bayes risk: of an actor's samples the one that agrees best with all of them, by a score.

    Ŷ = argmax_{Y in C}  Σ_{Y' in C} n(Y') u(Y, Y') / N,   C the different ones of N samples, n how often each was drawn

u(Y, Y') is the score of Y were Y' the reference. The sum is an estimate of what training for the score maximises, the
expected score under the actor's own belief; here it is maximised by choice among samples, and nothing is trained. Of
equals the one that was drawn more often, then the one that was drawn first, is taken.

The random numbers of a source come from the seed and from the source alone: its answer does not depend on what else is
predicted, nor on when lines arrive, and the first of many samples are those of few.

N samples cost N samplings and up to N² comparisons a source. Scores of tokens make them in tensors; scores of texts are
asked once for each different pair of texts.

Shapes: B sources, S source tokens, M samples of each, T steps, P pairs of candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.score import Decode, Scorable, Score
from seqcritic.decoding.sampling import draw_tokens
from seqcritic.draws import BITS
from seqcritic.tensors import rows as all_rows

SAMPLED_AT_ONCE = 2048  # samples drawn at once, so that memory does not grow with their number
COMPARED_AT_ONCE = 1 << 23  # pairs times their tokens, squared: what scores of tokens make tables of

ReadSources = Callable[[], list[str]]


@dataclass(frozen=True)
class MinimumBayesRisk:
    """So many samples, drawn by a seed, and the score that they are compared by, or its name.

    None: the score that the model is trained for.
    """

    samples: int = 32
    utility: Score | str | None = None
    seed: int = 1

    def signature(self) -> str:
        """Return the choice for a score's signature."""
        assert isinstance(self.utility, Score), "a score by its name is made where the model is known"
        name = self.utility.surrogate or ",".join(self.utility.signature()).removeprefix("score:")
        return f"search:mbr:{self.samples}|utility:{name}|seed:{self.seed}"

    def describe(self) -> str:
        """Return the choice in words."""
        return f"mbr {self.samples}"


@dataclass(frozen=True)
class Candidates:
    """The distinct samples of one source, without end tokens, most frequent first, and their counts."""

    tokens: list[list[int]]
    counts: list[int]


def find_by_risk(
    actor: Actor,
    sources: Tensor,
    source_mask: Tensor,
    choice: MinimumBayesRisk,
    decode: Decode | None = None,
    read_sources: ReadSources | None = None,
) -> list[list[int]]:
    """Return the candidate of least risk of each source [B, S], without its end token.

    `decode` makes text of tokens, for scores of texts; `read_sources` returns the B sources, for scores that read them.
    """
    assert isinstance(choice.utility, Score), "a score by its name is made where the model is known"
    best: list[list[int]] = []
    size = max(1, SAMPLED_AT_ONCE // choice.samples)
    for first in range(0, len(sources), size):
        part = slice(first, first + size)
        drawn = draw_candidates(actor, sources[part], source_mask[part], choice.samples, choice.seed)
        read = None if read_sources is None else read_sources()[part]
        expected = expected_utilities(drawn, choice.utility, actor.special.padding, decode, read)
        best += [
            candidates.tokens[int(utilities.argmax())] for candidates, utilities in zip(drawn, expected, strict=True)
        ]
    return best


@torch.no_grad()
def draw_candidates(
    actor: Actor, sources: Tensor, source_mask: Tensor, num_samples: int, seed: int
) -> list[Candidates]:
    """Return the different ones of so many samples of each source [B, S]."""
    maximum_lengths = actor.limits.of(source_mask)
    # Each source draws for as many tokens as it may have, padded to the longest: its numbers are its own.
    steps = int(maximum_lengths.max())
    # [B * M, T]
    numbers = torch.cat(
        [
            torch.nn.functional.pad(
                _draw_own(seed, source[mask], num_samples, maximum_length), (0, steps - maximum_length)
            )
            for source, mask, maximum_length in zip(
                sources.cpu(), source_mask.cpu(), maximum_lengths.tolist(), strict=True
            )
        ]
    )
    memory = all_rows.repeat(actor.encode(sources, source_mask), num_samples)
    tokens = draw_tokens(
        actor, memory, maximum_lengths.repeat_interleave(num_samples), numbers.T.to(maximum_lengths.device)
    )
    # From the first end or padding on: an unfinished sample has neither and counts whole.
    over = actor.special.is_over(tokens).long().cumsum(dim=1) > 0
    lengths = (~over).sum(dim=1).tolist()
    samples = [tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths, strict=True)]
    found = []
    for first in range(0, len(samples), num_samples):
        ranked = Counter(samples[first : first + num_samples]).most_common()  # of equals the first drawn
        found.append(Candidates([list(sample) for sample, _ in ranked], [count for _, count in ranked]))
    return found


def expected_utilities(
    drawn: Sequence[Candidates],
    utility: Score,
    padding: int,
    decode: Decode | None = None,
    sources: Sequence[str] | None = None,
) -> list[Tensor]:
    """Return the mean score of each candidate of each source against all its samples, float64."""
    # Of all sources in one list: the score is asked for full tables, however few candidates a source has.
    pairs = [pair for candidates in drawn for pair in product(candidates.tokens, candidates.tokens)]
    of_source = [source for source, candidates in enumerate(drawn) for _ in range(len(candidates.tokens) ** 2)]
    # With a 1 in front: samples may all be empty, and nothing is divided by 0.
    longest = max(1, *(len(tokens) for candidates in drawn for tokens in candidates.tokens))
    size = max(1, COMPARED_AT_ONCE // longest**2)
    write = _remembering(decode)
    parts = []
    for first in range(0, len(pairs), size):
        some = pairs[first : first + size]
        read = None if sources is None else [sources[source] for source in of_source[first : first + size]]
        # In float64, so that near ties are told by the utilities and not by how sums round.
        parts.append(utility.score(_as_scorable(some, padding, write, read)).double().cpu())
    scores = torch.cat(parts)
    expected = []
    for candidates in drawn:
        count = len(candidates.tokens)
        # [C, C], candidate by what stands for the reference, as `product` counts them.
        matrix, scores = scores[: count**2].view(count, count), scores[count**2 :]
        weights = torch.tensor(candidates.counts, dtype=torch.float64, device="cpu")
        expected.append((matrix * weights).sum(dim=1) / weights.sum())
    return expected


def _as_scorable(
    pairs: list[tuple[list[int], list[int]]], padding: int, write: Decode | None, sources: list[str] | None
) -> Scorable:
    """Return pairs of a prediction and what stands for its reference."""
    (predictions, lengths), (references, reference_lengths) = (
        _pad(list(side), padding) for side in zip(*pairs, strict=True)
    )
    return Scorable(
        predictions,
        lengths,
        references[:, None],
        reference_lengths[:, None],
        write,
        # Lazily: scores of tokens never ask for a text.
        None if write is None else lambda: [(write(reference),) for _, reference in pairs],
        None if sources is None else lambda: sources,
    )


def _pad(rows: list[list[int]], padding: int) -> tuple[Tensor, Tensor]:
    """Return rows of tokens as one tensor [P, T], and their lengths [P]."""
    width = max(1, *map(len, rows))
    table = torch.tensor([row + [padding] * (width - len(row)) for row in rows], dtype=torch.int64, device="cpu")
    return table, torch.tensor([len(row) for row in rows], dtype=torch.int64, device="cpu")


def _remembering(decode: Decode | None) -> Decode | None:
    """Return what makes text of tokens, of each candidate once."""
    if decode is None:
        return None
    # Every candidate stands in 2 C pairs.
    known: dict[tuple[int, ...], str] = {}

    def write(tokens: list[int]) -> str:
        key = tuple(tokens)
        if key not in known:
            known[key] = decode(tokens)
        return known[key]

    return write


def _draw_own(seed: int, source: Tensor, num_samples: int, num_steps: int) -> Tensor:
    """Return whole numbers [M, T], uniform in [0, 2³²), of a source and a seed."""
    digest = sha256(f"{seed}:".encode() + source.contiguous().numpy().tobytes()).digest()
    own = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    # Sample by sample, so that more samples begin with the same ones.
    return torch.randint(1 << BITS, (num_samples, num_steps), generator=own, device="cpu")
