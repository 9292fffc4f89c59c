"""Hugging Face models as actors: encoder-decoder and decoder-only, behind one contract.

Memory is everything known before the first free token: the keys and values of cross-attention, those of what is always
given (the decoder's start, a language, a task; or the whole prompt), and the last hidden state. Encoder-decoders and
decoder-only models so share one path: `start` reads it off the memory, `step` runs the stack under the head for one
token over a cache, `features` runs it for a whole given sequence at once.

Caches go in and out as plain tensors, so that rows can be selected and repeated by anybody; the library's own cache
objects live for one call only.

Dropout of these models draws from the global generator and cannot be repeated step by step, so `repeats_masks` is
False: rewards are learnt from without dropout. What `draw_masks` returns is a seed; a memory that was encoded with it
is read, and scored, with dropout from that seed.

Shapes: B rows, S source tokens or frames, T tokens, V vocabulary, H hidden size, N unmasked tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPastAndCrossAttentions

from seqcritic.contracts.actor import Actor, SpecialTokens
from seqcritic.errors import UserError
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.rows import Shared

KeysAndValues = tuple[tuple[Tensor, Tensor], ...]  # [B, heads, length, size] each, one pair a layer
NEVER = -1e9  # the logit of a token that must not be drawn: finite, as the contract asks


class Memory(NamedTuple):
    """What is known before the first free token."""

    mask: Tensor  # [B, S], True on the source's own tokens; of decoder-only models padded on the left
    read: Tensor  # [B, S, 0], whose shape alone the decoder looks at once it has `cross`
    cross: KeysAndValues  # of the source, for cross-attention; () for decoder-only models
    given: KeysAndValues  # of what is always given before the first free token
    hidden: Tensor  # [B, H], the state that says the first free token
    seed: Shared[int | None]  # of dropout; None: none


class State(NamedTuple):
    """What is known before the next token."""

    cache: KeysAndValues
    hidden: Tensor  # [B, H]
    is_first: Tensor  # [B], True before the first free token


class HuggingFaceActor(Actor):
    """A pretrained generative model: `AutoModelForSeq2SeqLM`, `AutoModelForCausalLM`, Whisper and their like."""

    repeats_masks = False
    _never: Tensor  # [V], added to all logits
    _never_first: Tensor  # [V], added to those of the first free token

    def __init__(self, model: Any, prefix: Sequence[int] | None = None) -> None:
        """Take a model as its library made it; `prefix`: what the decoder is always given, if not its own config's."""
        super().__init__()
        self.model = model
        self.crosses: bool = bool(model.config.is_encoder_decoder)
        self._reads_text = model.main_input_name == "input_ids"
        top = model.get_decoder()
        self._body = [top.get_decoder()]  # in a list: a module of its own would be registered twice
        # Of a pair of models (image to text) the decoder has a head of its own.
        self._headed = [model if top is self._body[0] else top]
        generation = model.generation_config
        self.special = _special_tokens(model)
        self.prefix = list(prefix) if prefix is not None else _given_tokens(model)
        self.num_tokens = int(_text_config(model).vocab_size)
        self.state_size = int(_text_config(model).hidden_size)
        self.register_buffer("_never", self._mark(self._suppressed(generation.suppress_tokens)), persistent=False)
        first = list(generation.begin_suppress_tokens or ())
        self.register_buffer("_never_first", self._mark(first), persistent=False)
        self._has_dropout = _has_dropout(model.config)
        model.eval()  # dropout is switched on where a memory asks for it, and nowhere else

    def _suppressed(self, suppressed: Sequence[int] | None) -> list[int]:
        """Tokens that are never drawn: those of the config, and padding, which some models take positions from."""
        never = list(suppressed or ())
        return never if self.special.padding in self.special.end else [*never, self.special.padding]

    def _mark(self, tokens: Sequence[int]) -> Tensor:
        marked = torch.zeros(self.num_tokens, device=self.device)
        marked[list(tokens)] = NEVER
        return marked

    def draw_masks(self, num_rows: int, generator: torch.Generator) -> int | None:
        """Return the seed of dropout, None for a model without any."""
        if not self._has_dropout:
            return None
        return int(torch.randint(1 << 62, (), generator=generator, device="cpu"))

    def encode(self, sources: Tensor, mask: Tensor, masks: int | None = None) -> Memory:
        """Read sources: ids [B, S], which decoder-only models take as prompts, audio features [B, S, F], or pixels."""
        seed = Shared(masks)
        with self._dropping(masks):
            if not self.crosses:
                return self._read_prompt(sources, mask, seed)
            encoder = self.model.get_encoder()
            if self._reads_text:
                read = encoder(sources, attention_mask=mask.long())[0]
            else:
                read = encoder(sources.transpose(1, 2) if sources.dim() == 3 else sources)[0]
            if self._headed[0] is not self.model and read.shape[2] != self.state_size:
                read = self.model.enc_to_dec_proj(read)  # a pair of models of different widths
            # What is heard or seen has one length for all rows: the library's features are padded with silence.
            seen = mask if self._reads_text else mask.new_ones(read.shape[:2], dtype=torch.bool)
            given = torch.tensor(self.prefix, device=sources.device).expand(len(read), -1)
            start = Memory(seen, read, (), (), read[:, 0, :0], seed)
            hidden, cache, cross = self._run(start, (), given)
            return Memory(seen, read[:, :, :0], cross, cache, hidden[:, -1], seed)

    def _read_prompt(self, sources: Tensor, mask: Tensor, seed: Shared[int | None]) -> Memory:
        """Run over prompts, moved to the right so that the last token of each stands last."""
        length = mask.shape[1]
        positions = (torch.arange(length, device=mask.device) + mask.sum(dim=1, keepdim=True)) % length
        sources, mask = sources.gather(1, positions), mask.gather(1, positions)
        start = Memory(mask, sources[:, :, None][:, :, :0], (), (), mask[:, :0], seed)
        hidden, cache, _ = self._run(start, (), sources)
        return start._replace(given=cache, hidden=hidden[:, -1])

    def start(self, memory: Memory) -> State:
        """Return the state before the first free token."""
        return State(memory.given, memory.hidden, torch.ones_like(memory.mask[:, 0], dtype=torch.bool))

    def step(self, memory: Memory, state: State, tokens: Tensor) -> State:
        """Return the state after consuming tokens [B]."""
        hidden, cache, _ = self._run(memory, state.cache, tokens[:, None])
        return State(cache, hidden[:, -1], torch.zeros_like(state.is_first))

    def logits(self, state: State) -> Tensor:
        """Return what the head says of states, [B, V]."""
        return self._say(state.hidden, state.is_first)

    def view(self, state: State) -> Tensor:
        """Return the last hidden state [B, H]."""
        return state.hidden

    def features(self, memory: Memory, tokens: Tensor, mask: Tensor) -> tuple[Packed, Tensor]:
        """Return hidden states [N, H] of the unmasked tokens, and [B, T, H], by one pass over tokens [B, T]."""
        hidden = memory.hidden[:, None]
        if tokens.shape[1] > 1:
            with self._dropping(memory.seed.content):
                following, _, _ = self._run(memory, memory.given, tokens[:, :-1])
            hidden = torch.cat([hidden, following], dim=1)
        return Packed.of(hidden, mask), hidden

    def logits_of(self, features: Packed) -> Packed:
        """Return packed logits [N, V]."""
        return features._replace(rows=self._say(features.rows, features.positions % features.shape[1] == 0))

    def token_vectors(self) -> Tensor | None:
        """Return the matrix of the head [V, H], which most models read tokens by too."""
        head = self._headed[0].get_output_embeddings()
        return None if head is None else head.weight

    def _say(self, hidden: Tensor, is_first: Tensor) -> Tensor:
        """Run the head, with all that the model does before and after it, on hidden states [N, H]."""
        body, headed = self._body[0], self._headed[0]
        # T5 scales what its head reads, Marian adds a bias, Gemma caps: all that stands in the model's own forward
        # pass, so that runs, with the states in place of what its body would return.
        answer = BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=hidden[:, None])
        ids = torch.zeros(len(hidden), 1, dtype=torch.int64, device=hidden.device)
        given: dict[str, Any] = {"input_ids": ids}
        if headed is self.model and self.crosses:
            given = {"decoder_input_ids": ids, "encoder_outputs": BaseModelOutput(last_hidden_state=hidden[:, None])}
        with _returning(body, answer):
            logits: Tensor = headed(**given, use_cache=False).logits[:, 0]
        never = self._never + is_first[:, None] * self._never_first
        return logits + never

    def _run(self, memory: Memory, cache: KeysAndValues, tokens: Tensor) -> tuple[Tensor, KeysAndValues, KeysAndValues]:
        """Run the stack under the head over tokens [B, T] after a cache; return hidden states and both caches."""
        own, cross = _cache_of(cache), _cache_of(memory.cross)
        given: dict[str, Any] = {}
        whole: Cache = own
        if self.crosses:
            whole = EncoderDecoderCache(own, cross)
            given = {"encoder_hidden_states": memory.read}
            if self._reads_text:
                given["encoder_attention_mask"] = memory.mask.long()
            if memory.cross:  # only the shape is looked at: keys and values are there
                given["encoder_hidden_states"] = memory.read.new_zeros(*memory.read.shape[:2], self.state_size)
        else:
            before = own.get_seq_length()
            ones = memory.mask.new_ones(len(memory.mask), before + tokens.shape[1] - memory.mask.shape[1])
            seen = torch.cat([memory.mask, ones], dim=1).long()
            # Positions count the row's own tokens, not its padding.
            positions = (seen.cumsum(dim=1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
            given = {"attention_mask": seen, "position_ids": positions}
        hidden = self._body[0](input_ids=tokens, past_key_values=whole, use_cache=True, **given)[0]
        return hidden, _pairs_of(own), _pairs_of(cross)

    @contextmanager
    def _dropping(self, seed: int | None) -> Iterator[None]:
        """Drop units, drawn from a seed of their own, or none."""
        if seed is None:
            yield
            return
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            self.model.train()
            try:
                yield
            finally:
                self.model.eval()


def _cache_of(pairs: KeysAndValues) -> DynamicCache:
    """Return a cache of these keys and values; made without a config, whose layers may be the encoder's, or cropped."""
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(pairs):
        cache.update(keys, values, layer)
    return cache


def _pairs_of(cache: Any) -> KeysAndValues:
    return tuple((layer.keys, layer.values) for layer in cache.layers)


@contextmanager
def _returning(module: nn.Module, answer: Any) -> Iterator[None]:
    """Let a module return an answer whatever it is called with."""
    module.forward = lambda *arguments, **named: answer
    try:
        yield
    finally:
        del module.forward  # the class's own is found again


def _has_dropout(config: Any) -> bool:
    """Whether any rate of dropout in a config, or in one within it, is not 0; families name them differently."""
    values = config.to_dict()
    return any("drop" in name and isinstance(value, float) and value > 0 for name, value in _leaves(values))


def _leaves(tree: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield str(name), value


def _text_config(model: Any) -> Any:
    """The config of what writes text: of a pair of models, that of the decoder."""
    return model.config.get_text_config(decoder=True)


def _special_tokens(model: Any) -> SpecialTokens:
    generation = model.generation_config
    ends = generation.eos_token_id
    if ends is None:
        raise UserError("actor.pretrained: the model's generation config has no eos_token_id: nothing ends an answer")
    end = (ends,) if isinstance(ends, int) else tuple(ends)
    padding = generation.pad_token_id
    return SpecialTokens(end=end, padding=end[0] if padding is None else padding, begin=generation.bos_token_id)


def _given_tokens(model: Any) -> list[int]:
    """What the decoder is always given: its start, and a forced first token such as a language."""
    if not model.config.is_encoder_decoder:
        return []
    generation = model.generation_config
    start = generation.decoder_start_token_id
    if start is None:
        raise UserError("actor.pretrained: the model's generation config has no decoder_start_token_id")
    forced = generation.forced_bos_token_id
    return [start] if forced is None else [start, forced]
