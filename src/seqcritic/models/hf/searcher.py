"""The hypotheses of a beam that never move: each writes its keys and values once, and a mask shows it its ancestors.

Where hypotheses are copied to go on from their parents, every step moves all keys and values of all tokens before. Here
those of an example's hypotheses stand in one row of slots, in the order in which they were written: first what is
always given, then W slots a step. What a hypothesis may see, its parents up to the first token and itself, is a row of
numbers added to its attention, 0 or −∞, and that alone is taken from its parent. Every few steps the slots that no
hypothesis sees any more, those of the many that died out, are dropped. An example's source is kept once, for all its
hypotheses.

Shapes: R examples, W hypotheses of each, L slots, D = heads · size, S source positions, H hidden size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from seqcritic.models.hf.decoder import Decoder, KeysAndValues, hide

STEPS = 6  # for which there is room until slots are dropped


class Live(NamedTuple):
    """What is known of the hypotheses before their next tokens."""

    hidden: Tensor  # [R * W, H]
    seen: Tensor  # [R * W, L], 0 for the slots of a hypothesis' own tokens, −∞ for those of others


class BeamSearcher:
    """A decoder on all hypotheses of some examples at once; nothing is recorded for gradients."""

    def __init__(
        self,
        decoder: Decoder,
        given: KeysAndValues,
        cross: KeysAndValues,
        source_mask: Tensor,
        hidden: Tensor,
        never_first: Tensor | None,
        width: int,
    ) -> None:
        """Take what is known before the first token, one row an example, and what is added to its logits [V].

        No example ever has more than `width` hypotheses.
        """
        self.decoder, self.cross_pairs, self.hidden, self.never_first = decoder, cross, hidden, never_first
        self.hidden_sources = hide(source_mask, hidden)[:, None, None]
        self.room = STEPS * width
        self.position = self.num_slots = given[0][0].shape[2]
        times = torch.arange(self.position, device=hidden.device).expand(len(hidden), -1)
        self.times = self._with_room(times)  # [R, L and room], when the token of a slot was written
        # [R, L and room, D] each, keys and values of each layer
        self.slots = [tuple(self._with_room(part.transpose(1, 2).flatten(2)) for part in pair) for pair in given]
        self.added = self.hidden_sources  # to the attention of the present step, [R, 1 or heads, W, L]

    def start(self) -> Live:
        """Return one hypothesis for each example, before its first token."""
        return Live(self.hidden, self.hidden.new_zeros(len(self.hidden), self.num_slots))

    def keep(self, examples: Tensor) -> None:
        """Drop all examples but some."""
        self.slots = [tuple(part[examples] for part in pair) for pair in self.slots]
        self.cross_pairs = tuple((keys[examples], values[examples]) for keys, values in self.cross_pairs)
        self.times, self.hidden_sources = self.times[examples], self.hidden_sources[examples]

    def step(self, live: Live, parents: Tensor, tokens: Tensor) -> Live:
        """Return the hypotheses that continue those at positions `parents` with `tokens`, both [R * W]."""
        num_rows = len(self.hidden_sources)
        width = len(tokens) // num_rows
        seen = live.seen.index_select(0, parents)
        if self.num_slots + width > self.times.shape[1]:
            seen = self._drop_unseen(seen)
        itself = hide(torch.eye(width, dtype=torch.bool, device=tokens.device), live.hidden)
        seen = torch.cat([seen, itself.repeat(num_rows, 1)], dim=1)
        # Times, since after slots are dropped a slot's place says no more how far away its token is.
        self.times[:, self.num_slots : self.num_slots + width] = self.position
        self.num_slots += width
        self.added = seen.view(num_rows, 1, width, -1)
        if self.decoder.distance_bias is not None:
            bias = self.decoder.distance_bias(self.position + 1)[:, self.times[:, : self.num_slots]]  # [heads, R, L]
            self.added = self.added + bias.transpose(0, 1)[:, :, None]
        hidden = self.decoder.read(tokens, self.position, self)
        self.position += 1
        return Live(hidden, seen)

    def logits(self, live: Live) -> Tensor:
        """Return the unnormalised log-probabilities [R * W, V] of the next token."""
        logits = self.decoder.say(live.hidden)
        # By identity: `start` hands out this very tensor, and every step makes another.
        is_first = live.hidden is self.hidden
        return logits + self.never_first if is_first and self.never_first is not None else logits

    def own(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return what each hypothesis sees of its ancestors; part of `Attention`."""
        num_rows, last = len(self.times), self.num_slots
        first = last - len(keys) // num_rows
        for slots, new in zip(self.slots[layer], (keys, values), strict=True):
            slots[:, first:last] = new.view(num_rows, last - first, -1)
        all_keys, all_values = (self._split(slots[:, :last]) for slots in self.slots[layer])
        return self._attend(queries, all_keys, all_values, self.added)

    def cross(self, layer: int, queries: Tensor) -> Tensor:
        """Return what each hypothesis sees of its example's source; part of `Attention`."""
        return self._attend(queries, *self.cross_pairs[layer], self.hidden_sources)

    def _split(self, rows: Tensor) -> Tensor:
        """Return [R, heads, L, size] of [R, L, D]."""
        return rows.view(*rows.shape[:2], self.decoder.num_heads, -1).transpose(1, 2)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, added: Tensor) -> Tensor:
        split = self._split(queries.view(len(keys), len(queries) // len(keys), -1))
        seen = scaled_dot_product_attention(split, keys, values, added, scale=self.decoder.attention_scale)
        return seen.transpose(1, 2).reshape(len(queries), -1)

    def _drop_unseen(self, seen: Tensor) -> Tensor:
        """Drop the slots that no hypothesis sees and make room for some steps; return what is seen, [R * W, L']."""
        by_example = seen.view(len(self.times), -1, seen.shape[1])
        used = (by_example == 0).any(dim=1)  # [R, L]
        self.num_slots = int(used.sum(dim=1).max())
        # Those in use first, in their order; where an example has fewer, what follows stays unseen.
        order = (~used).to(torch.int8).argsort(dim=1, stable=True)[:, : self.num_slots]
        self.times = self._with_room(self.times.gather(1, order))
        kept = (order + torch.arange(len(order), device=order.device)[:, None] * self.slots[0][0].shape[1]).flatten()
        self.slots = [tuple(self._moved(part, kept) for part in pair) for pair in self.slots]
        return by_example.gather(2, order[:, None].expand(-1, by_example.shape[1], -1)).flatten(0, 1)

    def _moved(self, slots: Tensor, kept: Tensor) -> Tensor:
        return self._with_room(slots.flatten(0, 1).index_select(0, kept).view(len(slots), self.num_slots, -1))

    def _with_room(self, slots: Tensor) -> Tensor:
        """Return [R, L, …] with room for the slots of some steps behind."""
        wider = slots.new_empty(len(slots), slots.shape[1] + self.room, *slots.shape[2:])
        wider[:, : slots.shape[1]] = slots
        return wider
