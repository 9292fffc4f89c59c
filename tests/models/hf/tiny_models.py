"""Tiny models of many families with random weights, made here: no hub is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

NUM_TOKENS = 24
END, PADDING, START = 1, 0, 2
WIDE = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
WIDE |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64}
TOKENS = {"vocab_size": NUM_TOKENS, "eos_token_id": END, "pad_token_id": PADDING, "bos_token_id": 3}
STARTED = TOKENS | {"decoder_start_token_id": START}
DEEP = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
OPT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32, "word_embed_proj_dim": 16}
LED = {key: value for key, value in WIDE.items() if key != "max_position_embeddings"}
LED |= {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64, "attention_window": 4}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}


def _seq2seq(name: str, **settings: Any) -> Callable[[float], Any]:
    def make(dropout: float) -> Any:
        config = getattr(transformers, f"{name}Config")(**settings, **_dropouts(name, dropout))
        kind = {"T5": "ForConditionalGeneration", "Marian": "MTModel"}.get(name, "ForConditionalGeneration")
        return getattr(transformers, f"{name}{kind}")(config)

    return make


def _causal(name: str, kind: str = "ForCausalLM", **settings: Any) -> Callable[[float], Any]:
    def make(dropout: float) -> Any:
        config = getattr(transformers, f"{name}Config")(**settings, **_dropouts(name, dropout))
        return getattr(transformers, f"{name}{kind}")(config)

    return make


def _dropouts(name: str, rate: float) -> dict[str, float]:
    if name == "T5":
        return {"dropout_rate": rate}
    if name == "GPT2":
        return {"resid_pdrop": rate, "embd_pdrop": rate, "attn_pdrop": rate}
    if name in ("Llama", "Qwen2", "Mistral", "Gemma2"):
        return {}
    if name == "Bloom":
        return {"hidden_dropout": rate, "attention_dropout": 0.0}
    return {"dropout": rate, "attention_dropout": 0.0, "activation_dropout": 0.0}


def _whisper(dropout: float) -> Any:
    config = transformers.WhisperConfig(
        **WIDE,
        **STARTED,
        dropout=dropout,
        num_mel_bins=6,
        max_source_positions=5,
        max_target_positions=40,
        begin_suppress_tokens=[9],
    )
    return transformers.WhisperForConditionalGeneration(config)


def _image_to_text(dropout: float) -> Any:
    seen = transformers.ViTConfig(**DEEP | {"hidden_size": 12}, image_size=8, patch_size=4, hidden_dropout_prob=dropout)
    said = transformers.GPT2Config(
        n_embd=16, n_layer=2, n_head=2, n_positions=64, add_cross_attention=True, is_decoder=True, **TOKENS
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(seen, said, **STARTED)
    return transformers.VisionEncoderDecoderModel(config)


FAMILIES: dict[str, Callable[[float], Any]] = {
    "t5": _seq2seq("T5", **T5, **STARTED),
    "t5-1.1": _seq2seq("T5", **T5, **STARTED, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "bart": _seq2seq("Bart", **WIDE, **STARTED, forced_eos_token_id=None),
    "mbart": _seq2seq("MBart", **WIDE, **STARTED, forced_eos_token_id=None),
    "pegasus": _seq2seq("Pegasus", **WIDE, **STARTED, forced_eos_token_id=None),
    "marian": _seq2seq("Marian", **WIDE, **STARTED, forced_eos_token_id=None),
    "m2m100": _seq2seq("M2M100", **WIDE, **STARTED),
    "led": _seq2seq("LED", **LED, **STARTED),
    "whisper": _whisper,
    "image-to-text": _image_to_text,
    "opt": _causal("OPT", **OPT, **TOKENS, max_position_embeddings=64),
    "bloom": _causal("Bloom", hidden_size=16, n_layer=2, n_head=2, **TOKENS),
    "gpt2": _causal("GPT2", "LMHeadModel", n_embd=16, n_layer=2, n_head=2, n_positions=64, **TOKENS),
    "llama": _causal("Llama", **DEEP, **TOKENS, max_position_embeddings=64),
    "qwen2": _causal("Qwen2", **DEEP, **TOKENS, num_key_value_heads=1, max_position_embeddings=64),
    "mistral": _causal("Mistral", **DEEP, **TOKENS, num_key_value_heads=1, sliding_window=4),
    "gemma2": _causal("Gemma2", **DEEP, **TOKENS, num_key_value_heads=1, head_dim=8, sliding_window=4),
}


def make_model(family: str, dropout: float = 0.0) -> Any:
    """Return a model with weights large enough for a lopsided policy."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = FAMILIES[family](dropout)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(8)
    model.generation_config.pad_token_id = PADDING
    return model
