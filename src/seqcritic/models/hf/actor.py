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

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from transformers.cache_utils import Cache, EncoderDecoderCache

from seqcritic.contracts.actor import Actor, Searcher
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.parts import ActorSettings
from seqcritic.contracts.registry import register_actor
from seqcritic.data.codecs.huggingface import HuggingFaceCodec, TextForm
from seqcritic.errors import UserError
from seqcritic.models import products
from seqcritic.models.hf.architectures import OwnStep
from seqcritic.models.hf.conventions import (
    given_tokens,
    has_dropout,
    make_codec,
    room_of,
    special_tokens,
    text_config,
)
from seqcritic.models.hf.decoder import Decoder, KeysAndValues, RowsAttention, hide
from seqcritic.models.hf.encoder_cache import EncoderCache, KeptAs
from seqcritic.models.hf.layers import compute_layers_again, replace_layers
from seqcritic.models.hf.library_calls import cache_of, pairs_of, say
from seqcritic.models.hf.load import load_configs, load_pretrained, load_tokenizer, require_safetensors
from seqcritic.models.hf.lora import add_adapters, digest_weights, merge_adapters, stop_training
from seqcritic.models.hf.searcher import BeamSearcher
from seqcritic.models.hf.settings import HuggingFaceSettings, LoraSettings, described
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.rows import Shared

NEVER = -1e9  # the logit of a token that must not be drawn: finite, as the contract asks


class Memory(NamedTuple):
    """What is known before the first free token."""

    mask: Tensor  # [B, S], True on the source's own tokens; of decoder-only models padded on the left
    read: Tensor  # [B, S, 0], whose shape alone the decoder looks at once it has `cross`; all of it, [B, S, H] or the
    # prompt [B, S, 1], where layers are computed again
    cross: KeysAndValues  # of the source, for cross-attention; () for decoder-only models
    given: KeysAndValues  # of what is always given before the first free token
    hidden: Tensor  # [B, H], the state that says the first free token
    seed: Shared[int | None]  # of dropout; None: none
    own_step: Shared[OwnStep]


class State(NamedTuple):
    """What is known before the next token."""

    cache: KeysAndValues
    hidden: Tensor  # [B, H]
    is_first: Tensor  # [B], True before the first free token
    decoder: Shared[Decoder | None]  # what steps in place of the library, held as long as steps are taken


@register_actor("huggingface")
class HuggingFaceActor(Actor):
    """A pretrained generative model: `AutoModelForSeq2SeqLM`, `AutoModelForCausalLM`, Whisper and their like."""

    repeats_masks = False
    can_be_sharded = True
    exports_itself = True
    Settings = HuggingFaceSettings
    settings: HuggingFaceSettings | None = None
    _never: Tensor  # [V], added to all logits
    _never_first: Tensor  # [V], added to those of the first free token

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        template: str | None = None,
        source_prefix: str = "",
        source_language: str | None = None,
        target_language: str | None = None,
        lora: LoraSettings | Mapping[str, Any] | None = None,
        freeze: Sequence[str] = (),
        encoder_cache: KeptAs | None = None,
        gradient_checkpointing: bool = False,
        prefix: Sequence[int] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """Take a model, and its tokenizer where texts are read, of Whisper its processor, as their library made them.

        The arguments are the settings of docs/huggingface.md. `prefix`: what the decoder is always given, if not what
        the model's own configuration says. Fresh adapters are drawn from `generator`.
        """
        super().__init__()
        generation, form = model.generation_config, TextForm(template, source_prefix, source_language, target_language)
        found = None if tokenizer is None else make_codec(model.config, generation, tokenizer, form)
        adapters = None if lora is None else LoraSettings.model_validate(lora)
        stop_training(model, freeze)
        if adapters is not None:
            add_adapters(model, adapters, torch.Generator() if generator is None else generator, freeze)
        replace_layers(model)
        self.crosses: bool = bool(model.config.is_encoder_decoder)
        if encoder_cache is not None and not self.crosses:
            raise UserError("actor.encoder_cache: a decoder-only model has no encoder; leave it null")
        self._cache = None if encoder_cache is None else EncoderCache(model.get_encoder(), encoder_cache)
        self.model = model
        self.codec = found
        switches = {"gradient_checkpointing": gradient_checkpointing, "encoder_cache": encoder_cache}
        self.settings = described(model, tokenizer, form, adapters, tuple(freeze), switches)
        self._reads_text = model.main_input_name == "input_ids"
        top = model.get_decoder()
        self._body = [top.get_decoder()]  # in a list: a module of its own would be registered twice
        # Of a pair of models (image to text) the decoder has a head of its own.
        self._headed = [model if top is self._body[0] else top]
        self.special = special_tokens(generation) if found is None else found.special
        self.prefix = list(prefix) if prefix is not None else given_tokens(model.config, generation, found)
        self.num_tokens = int(text_config(model.config).vocab_size)
        self.state_size = int(text_config(model.config).hidden_size)
        self.room = room_of(model.config)
        room = None if self.room.target is None else self.room.target - len(self.prefix)
        self.limits = replace(self.limits, room=room, source_in_room=not self.crosses)
        self.register_buffer("_never", self._mark(self._suppressed(generation.suppress_tokens)), persistent=False)
        first = list(generation.begin_suppress_tokens or ())
        self.register_buffer("_never_first", self._mark(first), persistent=False)
        self._begins_freely = not first
        self._has_dropout = has_dropout(model.config) or (adapters is not None and adapters.dropout > 0)
        self._computes_again = gradient_checkpointing
        if gradient_checkpointing:
            compute_layers_again(model)
        frozen = [(name, weight) for name, weight in self.named_parameters() if not weight.requires_grad]
        self.untrained = frozenset(name for name, _ in frozen)
        self.untrained_digest = digest_weights(frozen) if frozen else b""
        model.eval()  # dropout is switched on where a memory asks for it, and nowhere else

    @classmethod
    def build(
        cls, settings: ActorSettings, num_source_tokens: int, num_target_tokens: int, generator: torch.Generator
    ) -> Self:
        """Load the model that settings name; adapters are fresh."""
        assert isinstance(settings, HuggingFaceSettings)
        actor = cls(
            load_pretrained(settings),
            load_tokenizer(settings),
            template=settings.template,
            source_prefix=settings.source_prefix,
            source_language=settings.source_language,
            target_language=settings.target_language,
            lora=settings.lora,
            freeze=settings.freeze,
            encoder_cache=settings.encoder_cache,
            gradient_checkpointing=settings.gradient_checkpointing,
            generator=generator,
        )
        actor.settings = settings
        return actor

    @classmethod
    def build_codec(cls, settings: ActorSettings) -> Codec:
        """Return the codec of the model that settings name; its weights are not read."""
        assert isinstance(settings, HuggingFaceSettings)
        form = TextForm(settings.template, settings.source_prefix, settings.source_language, settings.target_language)
        require_safetensors(settings.pretrained)
        config, generation = load_configs(settings)
        codec = make_codec(config, generation, load_tokenizer(settings), form)
        given_tokens(config, generation, codec)  # a fault of the languages is told before the text is read
        return codec

    def save_pretrained(self, folder: Path) -> None:
        """Write the model as its own library does, adapters merged into it for good, with its tokenizer.

        Its generation config has what is always given and never drawn here, so that its answers are the same there.
        """
        merge_adapters(self.model)
        generation = self.model.generation_config
        if self.crosses and self._reads_text:  # Whisper's own `generate` makes what is given of language and task
            generation.decoder_start_token_id, *rest = self.prefix
            generation.forced_bos_token_id = rest[0] if len(rest) == 1 else generation.forced_bos_token_id
        generation.suppress_tokens = self._suppressed(generation.suppress_tokens) or None
        generation.pad_token_id = self.special.padding
        self.model.save_pretrained(folder)
        if isinstance(self.codec, HuggingFaceCodec):
            self.codec.save_pretrained(folder)

    def _suppressed(self, suppressed: Sequence[int] | None) -> list[int]:
        """Tokens that are never drawn: those of the config, and padding, which some models take positions from."""
        never = list(suppressed or ())
        return never if self.special.padding in (*self.special.end, *never) else [*never, self.special.padding]

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
        self._require_room(sources.shape[1], self.room.source if self._reads_text else None, "a source")
        with self._dropping(masks):
            if not self.crosses:
                return self._read_prompt(sources, mask, seed)
            if self._cache is None:
                read = self._read(sources, mask)
            else:
                read = self._cache.read(self.model.get_encoder(), sources, mask, self._read)
            if self._headed[0] is not self.model and read.shape[2] != self.state_size:
                read = self.model.enc_to_dec_proj(read)  # a pair of models of different widths
            # What is heard or seen has one length for all rows: the library's features are padded with silence.
            seen = mask if self._reads_text else mask.new_ones(read.shape[:2], dtype=torch.bool)
            given = torch.tensor(self.prefix, device=sources.device).expand(len(read), -1)
            start = Memory(seen, read, (), (), read[:, 0, :0], seed, Shared(OwnStep(self.model, self._never)))
            with self._not_learning():
                hidden, cache, cross = self._run(start, (), given)
            read = read if self._computes_again else read[:, :, :0]
            return start._replace(read=read, cross=cross, given=cache, hidden=hidden[:, -1])

    def _read(self, sources: Tensor, mask: Tensor) -> Tensor:
        """Run the encoder."""
        encoder = self.model.get_encoder()
        if self._reads_text:
            read: Tensor = encoder(sources, attention_mask=mask.long())[0]
        else:
            read = encoder(sources.transpose(1, 2) if sources.dim() == 3 else sources)[0]
        return read

    def _read_prompt(self, sources: Tensor, mask: Tensor, seed: Shared[int | None]) -> Memory:
        """Run over prompts, moved to the right so that the last token of each stands last."""
        length = mask.shape[1]
        positions = (torch.arange(length, device=mask.device) + mask.sum(dim=1, keepdim=True)) % length
        sources, mask = sources.gather(1, positions), mask.gather(1, positions)
        read = sources[:, :, None] if self._computes_again else sources[:, :, None][:, :, :0]
        start = Memory(mask, read, (), (), mask[:, :0], seed, Shared(OwnStep(self.model, self._never)))
        with self._not_learning():
            hidden, cache, _ = self._run(start, (), sources)
        return start._replace(given=cache, hidden=hidden[:, -1])

    def start(self, memory: Memory) -> State:
        """Return the state before the first free token."""
        is_first = torch.ones_like(memory.mask[:, 0], dtype=torch.bool)
        return State(memory.given, memory.hidden, is_first, Shared(self._decoder_of(memory)))

    def step(self, memory: Memory, state: State, tokens: Tensor) -> State:
        """Return the state after consuming tokens [B]."""
        if self._computes_again and torch.is_grad_enabled():
            raise UserError("actor.gradient_checkpointing: this method learns from single steps; leave it false")
        is_first, decoder = torch.zeros_like(state.is_first), self._decoder_of(memory)
        if decoder is None:
            hidden, cache, _ = self._run(memory, state.cache, tokens[:, None])
            return State(cache, hidden[:, -1], is_first, Shared(None))
        position = state.cache[0][0].shape[2]
        self._require_room(position + 1, self.room.target, "an answer")
        attention = RowsAttention(decoder, state.cache, memory.cross, hide(memory.mask, state.hidden)[:, None, None])
        hidden = decoder.read(tokens, position, attention)
        return State(tuple(attention.grown), hidden, is_first, Shared(decoder))

    def searcher(self, memory: Memory, width: int) -> Searcher:
        """Return what beam search goes on with: hypotheses that never move, where the architecture is known."""
        decoder = self._decoder_of(memory)
        if decoder is None:
            return super().searcher(memory, width)
        first = None if self._begins_freely else self._never_first
        return BeamSearcher(decoder, memory.given, memory.cross, memory.mask, memory.hidden, first, width)

    def _decoder_of(self, memory: Memory) -> Decoder | None:
        """Return what steps without the library where nothing is learnt from the steps; None: the library steps."""
        narrow = torch.is_autocast_enabled(memory.hidden.device.type) or products.are_asked_for()
        if narrow or torch.is_grad_enabled():
            return None
        return memory.own_step.content.decoder()

    def logits(self, state: State) -> Tensor:
        """Return what the head says of states, [B, V]."""
        return self._say(state.hidden, state.is_first, None if torch.is_grad_enabled() else state.decoder.content)

    def view(self, state: State) -> Tensor:
        """Return the last hidden state [B, H]."""
        return state.hidden

    def features(self, memory: Memory, tokens: Tensor, mask: Tensor) -> tuple[Packed, Tensor]:
        """Return hidden states [N, H] of the unmasked tokens, and [B, T, H], by one pass over tokens [B, T]."""
        if self._computes_again and torch.is_grad_enabled():
            hidden = self._run_whole(memory, tokens)
            return Packed.of(hidden, mask), hidden
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

    def _say(self, hidden: Tensor, is_first: Tensor, decoder: Decoder | None = None) -> Tensor:
        """Return logits [N, V] of hidden states [N, H], of which some stand before the first free token."""
        logits = decoder.say(hidden) if decoder else say(self._headed[0], self._body[0], hidden, self._never)
        return logits if self._begins_freely else logits + is_first[:, None] * self._never_first

    def _run_whole(self, memory: Memory, tokens: Tensor) -> Tensor:
        """Return hidden states [B, T, H] of one pass over all that is given and tokens [B, T], without a cache."""
        if self.crosses:
            given = torch.tensor(self.prefix, device=tokens.device).expand(len(tokens), -1)
            more: dict[str, Any] = {"encoder_hidden_states": memory.read}
            if self._reads_text:
                more["encoder_attention_mask"] = memory.mask.long()
        else:
            given = memory.read[:, :, 0]
            seen = torch.cat([memory.mask, torch.ones_like(tokens[:, 1:], dtype=torch.bool)], dim=1).long()
            more = {"attention_mask": seen, "position_ids": (seen.cumsum(dim=1) - 1).clamp(min=0)}
        whole = torch.cat([given, tokens[:, :-1]], dim=1)
        self._require_room(whole.shape[1], self.room.target, "an answer")
        with self._dropping(memory.seed.content):
            hidden: Tensor = self._body[0](input_ids=whole, use_cache=False, **more)[0]
        return hidden[:, given.shape[1] - 1 :]

    @contextmanager
    def _not_learning(self) -> Iterator[None]:
        """Where layers are computed again, the gradient is of `_run_whole` alone; caches are to draw with."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._computes_again):
            yield

    def _require_room(self, number: int, most: int | None, what: str) -> None:
        if most is not None and number > most:
            raise UserError(
                f"{what} of {number:,} tokens, what is given with it counted, is longer than the {most:,} positions of "
                "the model; shorten it, or choose a smaller data.maximum_length"
            )

    def _run(self, memory: Memory, cache: KeysAndValues, tokens: Tensor) -> tuple[Tensor, KeysAndValues, KeysAndValues]:
        """Run the stack under the head over tokens [B, T] after a cache; return hidden states and both caches."""
        own, cross = cache_of(cache), cache_of(memory.cross)
        self._require_room(own.get_seq_length() + tokens.shape[1], self.room.target, "an answer")
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
        return hidden, pairs_of(own), pairs_of(cross)

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
