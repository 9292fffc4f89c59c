"""Several actors as one, whose probabilities are the mean of theirs.

    p(y_t | y_1..t-1, X) = 1/M Σ_m p_m(y_t | y_1..t-1, X)

Greedy search, sampling and beam search go on with all members at once, each from its own states. Memory and state are
tuples of the members' own.

Shapes: B rows, T tokens, V vocabulary, H the members' views side by side, N unmasked tokens, W hypotheses of an
example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, Searcher
from seqcritic.errors import UserError
from seqcritic.tensors.packed import Packed

Parts = tuple[Any, ...]
"""What belongs to each member: memories, states, masks of dropout."""


class EnsembleActor(Actor):
    """Actors that write the same tokens, whatever they are made of."""

    def __init__(self, members: Sequence[Actor]) -> None:
        super().__init__()
        if not members:
            raise UserError("an ensemble needs at least one actor")
        first = members[0]
        for other in members[1:]:
            if (other.num_tokens, other.special) != (first.num_tokens, first.special):
                raise UserError(
                    "an ensemble needs actors that write the same tokens; these have vocabularies of "
                    f"{first.num_tokens} and {other.num_tokens} tokens, or other ends and padding"
                )
        self._members = nn.ModuleList(members)
        self.num_tokens, self.special = first.num_tokens, first.special
        self.limits = first.limits
        self.state_size = sum(member.state_size for member in members)
        self.fixed_size_state = all(member.fixed_size_state for member in members)
        self.repeats_masks = all(member.repeats_masks for member in members)

    @property
    def members(self) -> list[Actor]:
        """The actors whose probabilities are averaged."""
        return [cast(Actor, member) for member in self._members]

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> Parts | None:
        """Return what dropout keeps of each member; None where none has dropout."""
        masks = tuple(member.draw_masks(num_rows, generator) for member in self.members)
        # One None and not a tuple of them: that is how an actor says that it has no dropout.
        return None if all(own is None for own in masks) else masks

    def encode(self, sources: Tensor, mask: Tensor, masks: Parts | None = None) -> Parts:
        """Return what each member reads."""
        own = [None] * len(self.members) if masks is None else masks
        return tuple(member.encode(sources, mask, each) for member, each in zip(self.members, own, strict=True))

    def start(self, memory: Parts) -> Parts:
        """Return the members' states before the first token."""
        return tuple(member.start(own) for member, own in zip(self.members, memory, strict=True))

    def step(self, memory: Parts, state: Parts, tokens: Tensor) -> Parts:
        """Return the members' states after consuming tokens [B]."""
        parts = zip(self.members, memory, state, strict=True)
        return tuple(member.step(own, before, tokens) for member, own, before in parts)

    def logits(self, state: Parts) -> Tensor:
        """Return logarithms of the mean probabilities [B, V]."""
        return log_mean([member.logits(own) for member, own in zip(self.members, state, strict=True)])

    def view(self, state: Parts) -> Tensor:
        """Return the members' views, one beside the other, [B, H]."""
        return torch.cat([member.view(own) for member, own in zip(self.members, state, strict=True)], dim=1)

    def features(self, memory: Parts, tokens: Tensor, mask: Tensor) -> tuple[Packed, Tensor]:
        """Return logarithms of the mean probabilities [N, V], which are the logits too, and views [B, T, H]."""
        # Members have no features in common, but logits: they are made here, and `logits_of` passes them on.
        logits, views = [], []
        for member, own in zip(self.members, memory, strict=True):
            features, view = member.features(own, tokens, mask)
            logits.append(member.logits_of(features))
            views.append(view)
        # Members of different kinds pack their rows in orders of their own.
        aligned = [logits[0].align(own) for own in logits]
        return logits[0]._replace(rows=log_mean(aligned)), torch.cat(views, dim=2)

    def searcher(self, memory: Parts, width: int) -> Searcher:
        """Return what beam search goes on with: the members' own searchers."""
        return EnsembleSearcher([member.searcher(own, width) for member, own in zip(self.members, memory, strict=True)])

    def attention(self, memory: Parts, tokens: Tensor) -> Tensor | None:
        """Return the mean of the members' weights [B, T, S], where all know theirs."""
        found = [member.attention(own, tokens) for member, own in zip(self.members, memory, strict=True)]
        known = [weights for weights in found if weights is not None]
        # A mean over some would pass for that of all.
        return torch.stack(known).mean(dim=0) if len(known) == len(found) else None


class EnsembleSearcher:
    """The hypotheses of a search in the searchers of all members."""

    def __init__(self, searchers: Sequence[Searcher]) -> None:
        self.searchers = searchers

    def start(self) -> Parts:
        """One hypothesis for each example, before its first token."""
        return tuple(searcher.start() for searcher in self.searchers)

    def step(self, live: Parts, parents: Tensor, tokens: Tensor) -> Parts:
        """The hypotheses that continue those at positions `parents` with `tokens`, both [R * W]."""
        return tuple(each.step(own, parents, tokens) for each, own in zip(self.searchers, live, strict=True))

    def logits(self, live: Parts) -> Tensor:
        """Logarithms of the mean probabilities [R * W, V] of the next token."""
        return log_mean([each.logits(own) for each, own in zip(self.searchers, live, strict=True)])

    def keep(self, examples: Tensor) -> None:
        """Drop all examples but those where a mask is True."""
        for searcher in self.searchers:
            searcher.keep(examples)


def log_mean(logits: Sequence[Tensor]) -> Tensor:
    """Return log 1/M Σ_m softmax(logits_m), [N, V], of M logits [N, V]."""
    if len(logits) == 1:
        return logits[0]  # a constant apart, and to the bit the member's own
    # Normalised first: logits are known but for a constant, which differs from member to member.
    log_probs = torch.stack([torch.log_softmax(own, dim=1) for own in logits])
    return torch.logsumexp(log_probs, dim=0) - math.log(len(logits))
