"""The actor's contract: the model the user wants, p(y_t | y_1..t-1, X), as everything else sees it.

Five functions say what an actor is: `encode` reads sources once, `start` gives the state before the first token, `step`
the state after one more token, `logits` what the state says of the next token, and `view` what a critic or a baseline
may see of it. Everything that methods, decoding and analysis need beyond them is made of these five here, slowly but
right; an actor overrides what it can do faster.

Memory and State are nested tensors with rows in dimension 0 (tensors/rows.py); nobody but the actor looks inside.

Shapes: B rows, S source tokens or frames, T tokens, V vocabulary, H view, N unmasked tokens, F features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

import torch
from torch import Tensor, nn

from seqcritic.contracts.parts import ActorSettings, OwnActorSettings, construct
from seqcritic.errors import UserError
from seqcritic.tensors import rows
from seqcritic.tensors.packed import Packed

if TYPE_CHECKING:
    from seqcritic.contracts.codec import Codec

Memory: TypeAlias = Any
State: TypeAlias = Any
Masks: TypeAlias = Any


class PageNetwork(NamedTuple):
    """A network for a page that computes it in the browser: what report/playground/network.js has to know of it."""

    facts: dict[str, Any]  # JSON
    tensors: dict[str, Tensor]


@dataclass(frozen=True)
class SpecialTokens:
    """The ids of the begin, end, padding and unknown tokens; several tokens may end an answer."""

    end: tuple[int, ...]
    padding: int
    begin: int | None = None
    unknown: int | None = None

    def is_end(self, tokens: Tensor) -> Tensor:
        """True where tokens, of any shape, end an answer."""
        found = tokens == self.end[0]
        for other in self.end[1:]:
            found = found | (tokens == other)
        return found

    def is_over(self, tokens: Tensor) -> Tensor:
        """True where tokens, of any shape, are the end of an answer or stand after it."""
        return self.is_end(tokens) | (tokens == self.padding)

    def lengths(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Counts [B] of the tokens [B, T] before the end token; the mask [B, T] is True up to and including it."""
        return (mask & ~self.is_end(tokens)).sum(dim=1)

    def up_to_end(self, tokens: Tensor) -> Tensor:
        """True [B, T] up to and including the first end token of tokens [B, T]."""
        ends = self.is_end(tokens)
        # No end before this position; the end itself still counts.
        return ends.cumsum(dim=1) - ends.long() == 0

    def ordinary(self, num_tokens: int) -> Tensor:
        """The tokens [V'] that an answer may be made of, the unknown one included."""
        special = {*self.end, self.padding, self.begin}  # a begin of None is no token
        return torch.tensor([token for token in range(num_tokens) if token not in special])


@dataclass(frozen=True)
class LengthLimits:
    """How long an answer may grow, its end counted.

    One that is searched for or drawn for use: factor · |X| + extra tokens; |X| counts the source's end token. One that
    is drawn to learn from: |Y| + beyond_reference tokens; |Y| does not count the reference's end token.
    """

    factor: float = 2.0
    extra: int = 10
    beyond_reference: int = 3
    room: int | None = None
    """How many tokens fit into the actor; None: any number."""
    source_in_room: bool = False
    """Whether the source takes up part of the room, as a prompt does."""

    def of(self, source_mask: Tensor) -> Tensor:
        """The most tokens [B] of answers to sources with this mask [B, S]; parts of a token are left out."""
        lengths = source_mask.sum(dim=1)
        wanted = self._wanted(lengths)
        if self.room is None:
            return wanted
        # At least one, for the end: a source that fills the room still has an answer, an empty one.
        return torch.minimum(wanted, (self.room - self.source_in_room * lengths).clamp(min=1))

    def _wanted(self, lengths: Tensor) -> Tensor:
        if self.factor == int(self.factor):
            return int(self.factor) * lengths + self.extra  # exact on any device
        # On the CPU: not every device has float64, and 1.1 times 10 must not be 10.99999.
        return (self.factor * lengths.cpu().double() + 1e-9).long().to(lengths.device) + self.extra

    def signature(self) -> list[str]:
        """The parts of a score's signature that name these limits; none for the usual ones."""
        # The usual limits go unsaid, so that figures by them have one signature.
        usual = LengthLimits()
        if (self.factor, self.extra) == (usual.factor, usual.extra):
            return []
        return [f"length:{self.factor:g}*source+{self.extra}"]


class OutputLayer(Protocol):
    """The linear layer of an actor's logits, W x + b with x = inputs(features), for sums that are fused with it."""

    @property
    def weight(self) -> Tensor:
        """W [V, X]."""
        ...

    @property
    def bias(self) -> Tensor:
        """b [V]."""
        ...

    def inputs(self, features: Tensor) -> Tensor:
        """x [N, X] of features [N, F]."""
        ...


class Searcher(Protocol):
    """Steps many hypotheses of each example at once, for beam search. Only the searcher looks into what it returns."""

    def start(self) -> Any:
        """One hypothesis for each example, before its first token."""
        ...

    def step(self, live: Any, parents: Tensor, tokens: Tensor) -> Any:
        """The hypotheses that continue those at positions `parents` with `tokens`, both [R * W]."""
        ...

    def logits(self, live: Any) -> Tensor:
        """Unnormalised log-probabilities [R * W, V] of the next token."""
        ...

    def keep(self, examples: Tensor) -> None:
        """Drop all examples but those where a mask is True; the next step's parents are positions before it."""
        ...


class Actor(nn.Module, ABC):
    """A sequence model that can be sampled, scored, searched and trained."""

    num_tokens: int
    """V."""
    state_size: int
    """H of `view`; 0: methods and critics that read views are refused."""
    special: SpecialTokens
    limits: LengthLimits = LengthLimits()
    """How long answers may grow."""
    fixed_size_state: bool = False
    """True where states of different steps have one shape, as a GRU's: they can then be joined."""
    repeats_masks: bool = True
    """Whether `step` drops the units that `features` drops, given one memory. If not, rewards are learnt from without
    dropout."""
    codec: Codec | None = None
    """Text to ids and back, where the actor brings it along, as a pretrained one does."""
    untrained: frozenset[str] = frozenset()
    """Names of weights that nothing trains: copies of the actor share them, checkpoints hold `untrained_digest`."""
    untrained_digest: bytes = b""
    """A hash of these weights, by which a checkpoint knows them again."""
    can_be_sharded: ClassVar[bool] = False
    """Whether it computes by its parameters alone, asked for anew at every call, so that others may hold parts of them
    between updates (training/sharding.py)."""
    exports_itself: ClassVar[bool] = False
    """Whether `save_pretrained` writes a folder that another library loads."""
    Settings: ClassVar[type[ActorSettings] | None] = None
    """The section `actor` of a registered kind; None: `arguments` are those of its constructor."""
    builds_on_meta: ClassVar[bool] = False
    """Whether `build` works on torch's meta device, where the size of a network is known before it takes memory."""

    @classmethod
    def build(
        cls, settings: ActorSettings, num_source_tokens: int, num_target_tokens: int, generator: torch.Generator
    ) -> Self:
        """Build the actor that settings describe, with fresh weights; for a class of one's own, of its `arguments`."""
        assert isinstance(settings, OwnActorSettings), "a kind with Settings overrides this"
        return construct(cls, settings.arguments, generator)

    @classmethod
    def build_codec(cls, settings: ActorSettings) -> Codec | None:
        """The codec of the actor itself, as a pretrained model has one; None: the task's codec is used."""
        return None

    def save_pretrained(self, folder: Path) -> None:
        """Write a folder that another library loads, where `exports_itself`."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any] | None:
        """Arguments of the constructor, as JSON, that build this actor again; None: it must be passed again.

        A run stores them, so that it can be resumed, evaluated and exported from its folder alone.
        """
        return None

    @property
    def device(self) -> torch.device:
        """Where the weights are, and where what the actor reads must be."""
        # Asked anew: a network may be moved between two calls.
        return next(self.parameters()).device

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> Masks | None:
        """What dropout keeps of so many rows; None, nothing drawn, for an actor without dropout."""
        return None

    @abstractmethod
    def encode(self, sources: Tensor, mask: Tensor, masks: Masks | None = None) -> Memory:
        """Read sources, ids [B, S] or features [B, S, F], with their mask [B, S].

        Drawing and scoring from this memory drop the units of `masks`, the same ones at every step; None: no dropout.
        """

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The state before the first free token; whatever is always given before it has been consumed."""

    @abstractmethod
    def step(self, memory: Memory, state: State, tokens: Tensor) -> State:
        """The state after consuming tokens [B]; the state it is given stays valid."""

    @abstractmethod
    def logits(self, state: State) -> Tensor:
        """Finite unnormalised log-probabilities [B, V] of the next token."""

    @abstractmethod
    def view(self, state: State) -> Tensor:
        """What a critic or baseline may read of a state, [B, H]."""

    def features(self, memory: Memory, tokens: Tensor, mask: Tensor) -> tuple[Packed, Tensor]:
        """Inputs of `logits_of` at the unmasked positions of tokens [B, T], and views [B, T, H].

        Entry t belongs to token t given tokens 0..t-1. Where the mask [B, T] is False nothing is meant by them.
        """
        state = self.start(memory)
        logits, views = [self.logits(state)], [self.view(state)]
        # The last token is never consumed: there is nothing after it to be scored.
        for step in range(tokens.shape[1] - 1):
            state = self.step(memory, state, tokens[:, step])
            logits.append(self.logits(state))
            views.append(self.view(state))
        # The logits are the features here, F = V, and `logits_of` hands them on.
        return Packed.of(torch.stack(logits, dim=1), mask), torch.stack(views, dim=1)

    def logits_of(self, features: Packed) -> Packed:
        """Packed logits [N, V] from what `features` returned."""
        return features

    def score(self, memory: Memory, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [B, T, V] and views [B, T, H]; entry t belongs to token t given tokens 0..t-1."""
        features, views = self.features(memory, tokens, torch.ones_like(tokens, dtype=torch.bool))
        return self.logits_of(features).padded(), views  # [N, V] to [B, T, V]

    def output_layer(self) -> OutputLayer | None:
        """The linear layer that makes logits of features; None if there is none. Sums over V are fused with it."""
        return None

    def token_vectors(self) -> Tensor | None:
        """A vector [V, D] of each token, as the output layer has them, by which a critic may read and value tokens.

        None: there are none to be had, and critics have their own.
        """
        layer = self.output_layer()
        return None if layer is None else layer.weight

    def searcher(self, memory: Memory, width: int) -> Searcher:
        """What beam search of this width goes on with."""
        return SteppingSearcher(self, memory)

    def attention(self, memory: Memory, tokens: Tensor) -> Tensor | None:
        """Weights [B, T, S] with which token t of tokens [B, T] looked at the source, to be shown; None: not known."""
        return None

    def for_page(self) -> PageNetwork | None:
        """What a page needs to compute the actor in the browser; None: no page knows its equations."""
        return None

    def sharpen(self, factor: float) -> None:
        """Multiply all logits from now on: p becomes p^factor over its sum, the likeliest token stays the likeliest."""
        raise UserError(f"method.sharpening: {type(self).__name__} cannot be sharpened; leave it 1")


class Live(NamedTuple):
    """The live hypotheses of a stepping searcher: their states, and the example of each, as a row of the memory."""

    state: State
    examples: Tensor  # [R * W]


class SteppingSearcher:
    """The default searcher: every hypothesis is stepped by the actor as a row of its own."""

    def __init__(self, actor: Actor, memory: Memory) -> None:
        self.actor, self.memory = actor, memory

    def start(self) -> Live:
        """One hypothesis for each example, before its first token."""
        state = self.actor.start(self.memory)
        # Rows are counted in a view: what is in a state or a memory only the actor knows.
        return Live(state, torch.arange(len(self.actor.view(state)), device=self.actor.device))

    def step(self, live: Live, parents: Tensor, tokens: Tensor) -> Live:
        """The hypotheses that continue those at positions `parents` with `tokens`, both [R * W]."""
        examples = live.examples[parents]
        # A copy of the memory for every hypothesis at every step: right for any actor, and why fast ones override this.
        state = self.actor.step(rows.select(self.memory, examples), rows.select(live.state, parents), tokens)
        return Live(state, examples)

    def logits(self, live: Live) -> Tensor:
        """Unnormalised log-probabilities [R * W, V] of the next token."""
        return self.actor.logits(live.state)

    def keep(self, examples: Tensor) -> None:
        """Nothing to drop: every hypothesis knows its example."""
