"""What a pretrained model's own configuration says of how it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from transformers import ProcessorMixin

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.data.codecs.huggingface import HuggingFaceCodec, TextForm, is_whisper, knows_languages, language_id
from seqcritic.data.codecs.huggingface_speech import HuggingFaceSpeechCodec
from seqcritic.errors import UserError

WHISPER = "whisper"  # what configs call it; of models that hear it is the one whose features have one length


class Room(NamedTuple):
    """How many tokens fit in, the source's and the decoder's; None: any number."""

    source: int | None
    target: int | None


def text_config(config: Any) -> Any:
    """Return the config of what writes text: of a pair of models, that of the decoder."""
    return config.get_text_config(decoder=True)


def special_tokens(generation: Any) -> SpecialTokens:
    """Return end, padding and begin of a generation config."""
    ends = generation.eos_token_id
    if ends is None:
        raise UserError("actor.pretrained: the model's generation config has no eos_token_id: nothing ends an answer")
    end = (ends,) if isinstance(ends, int) else tuple(ends)
    padding = generation.pad_token_id
    return SpecialTokens(end=end, padding=end[0] if padding is None else padding, begin=generation.bos_token_id)


def given_tokens(config: Any, generation: Any, codec: HuggingFaceCodec | None) -> list[int]:
    """Return what the decoder is always given: its start, and what always stands first, such as a language."""
    if not config.is_encoder_decoder:
        return []
    start = generation.decoder_start_token_id
    if start is None:
        raise UserError("actor.pretrained: the model's generation config has no decoder_start_token_id")
    if codec is not None and is_whisper(codec.tokenizer):
        if getattr(generation, "is_multilingual", False) and codec.tokenizer.language is None:
            raise UserError("actor.target_language: this Whisper knows several languages; say which one it is to write")
        return list(codec.target_frame[0])  # start, language and task, no timestamps
    language = None if codec is None else codec.form.target_language
    if codec is not None and language is not None:
        token = language_id(codec.tokenizer, language)
        # A tokenizer that writes the language behind the text means it as the start of the decoder (mBART).
        return [token] if token in codec.target_frame[1] else [start, token]
    if generation.forced_bos_token_id is not None:
        return [start, generation.forced_bos_token_id]
    if codec is None:
        return [start]
    if knows_languages(codec.tokenizer):
        raise UserError("actor.target_language: the model knows several languages; say which one it is to write")
    return [start, *codec.target_frame[0]]


def make_codec(config: Any, generation: Any, tokenizer: Any, form: TextForm) -> HuggingFaceCodec:
    """Return the codec of a tokenizer, of Whisper of its processor, for the model of a config."""
    special, extractor = special_tokens(generation), None
    if config.model_type == WHISPER:
        if not isinstance(tokenizer, ProcessorMixin):
            raise UserError("actor.pretrained: a model that hears needs its feature extractor; give WhisperProcessor")
        tokenizer, extractor = tokenizer.tokenizer, tokenizer.feature_extractor
    end = tokenizer.eos_token_id
    if end in special.end:  # of several, references end as the tokenizer has it
        special = SpecialTokens((end, *(each for each in special.end if each != end)), special.padding, special.begin)
    num_tokens = int(text_config(config).vocab_size)
    if extractor is not None:
        return HuggingFaceSpeechCodec(tokenizer, special, num_tokens, extractor, form)
    return HuggingFaceCodec(tokenizer, special, num_tokens, bool(config.is_encoder_decoder), form)


def room_of(config: Any) -> Room:
    """Return how many tokens fit in; models without a table of positions, as T5, take any number."""
    values = config.to_dict()
    # By attribute first: configs map this name to their own, as GPT-2 to n_positions, which their dictionary lacks.
    most = getattr(config, "max_position_embeddings", None)
    if not config.is_encoder_decoder:
        return Room(most, most)
    source = values.get("max_encoder_position_embeddings", values.get("max_source_positions", most))
    target = values.get("max_decoder_position_embeddings", values.get("max_target_positions", most))
    return Room(source, target)


def has_dropout(config: Any) -> bool:
    """Whether any rate of dropout in a config, or in one within it, is not 0; families name them differently."""
    return any("drop" in name and isinstance(rate, float) and rate > 0 for name, rate in _leaves(config.to_dict()))


def _leaves(tree: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield str(name), value
