"""The search by which a trained actor is used: greedy, a beam with a length reward, or the least risk of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.score import Decode
from seqcritic.decoding.beam import Hypothesis, beam_search
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk, ReadSources, find_by_risk
from seqcritic.decoding.sampling import greedy

BEAM_POSITIONS = 2048  # hypotheses searched at once, so that memory does not grow with the width


@dataclass(frozen=True)
class Search:
    """The width of the beam, 1 for greedy search, and ρ, what each emitted token adds to a hypothesis' score.

    `refill`: hypotheses that have ended take up no positions of the beam, as in Hugging Face's `generate`.
    """

    width: int = 1
    length_reward: float = 0.0
    refill: bool = False

    def signature(self) -> str:
        """Return the search for a score's signature."""
        if self.width == 1:
            return "search:greedy"
        return f"search:beam:{self.width}|rho:{self.length_reward:g}" + ("|refill:yes" if self.refill else "")

    def describe(self) -> str:
        """Return the search in words."""
        if self.width == 1:
            return "greedy"
        return f"beam {self.width} refilled" if self.refill else f"beam {self.width}"


GREEDY = Search()
AnySearch: TypeAlias = Search | MinimumBayesRisk


def find_best(
    actor: Actor,
    sources: Tensor,
    source_mask: Tensor,
    search: AnySearch,
    decode: Decode | None = None,
    read_sources: ReadSources | None = None,
) -> Tensor:
    """Return the best prediction of each source [B, S], on whatever device, as padded tokens [B, T].

    What a choice by risk compares texts by: `decode` makes text of tokens, `read_sources` returns the B sources.
    """
    sources, source_mask = sources.to(actor.device), source_mask.to(actor.device)
    if isinstance(search, MinimumBayesRisk):
        # Candidates and hypotheses come without their end tokens, what greedy search finds with them.
        return _ended(actor, find_by_risk(actor, sources, source_mask, search, decode, read_sources))
    if search.width == 1:
        return greedy(actor, sources, source_mask)
    return _ended(actor, [found[0].tokens for found in find_several(actor, sources, source_mask, search, 1)])


def _ended(actor: Actor, best: list[list[int]]) -> Tensor:
    """Return answers, each closed by an end token, as one padded tensor [B, T]."""
    size = (len(best), max(map(len, best), default=0) + 1)
    # On the CPU: the answers are lists of Python by now, and whoever reads them makes text of them.
    tokens = torch.full(size, actor.special.padding, dtype=torch.int64, device="cpu")
    for row, found in enumerate(best):
        ended = [*found, actor.special.end[0]]
        tokens[row, : len(ended)] = torch.tensor(ended, dtype=torch.int64, device="cpu")
    return tokens


def find_several(
    actor: Actor, sources: Tensor, source_mask: Tensor, search: Search, num_best: int
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each source, best first, a few sources at a time."""
    sources, source_mask = sources.to(actor.device), source_mask.to(actor.device)
    size = max(1, BEAM_POSITIONS // search.width)
    found: list[list[Hypothesis]] = []
    for first in range(0, len(sources), size):
        part = slice(first, first + size)
        found += beam_search(
            actor,
            sources[part],
            source_mask[part],
            search.width,
            search.length_reward,
            num_best=num_best,
            refill=search.refill,
        )
    return found
