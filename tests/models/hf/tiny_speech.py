"""A tiny Whisper with random weights, and sounds of sine waves that say which tone they are: no hub is asked."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
import transformers
from tokenizers import pre_tokenizers

TONES = {"low": 300.0, "mid": 800.0, "high": 2000.0}
SAID = [f"{one} {two}" for one, two in product(TONES, repeat=2)]
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|translate|>", "<|notimestamps|>"]
RATE = 16_000
SECONDS = 1


def make_speech_tokenizer() -> Any:
    """Return Whisper's tokenizer with single bytes and the words of the tones."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges, pieces = [], []
    for word in TONES:
        grown = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"  # the space, as bytes are written
        for letter in word:
            merges.append((grown, letter))
            grown += letter
            pieces.append(grown)
    vocabulary = {piece: number for number, piece in enumerate([SPECIAL[0], *letters, *dict.fromkeys(pieces)])}
    tokenizer = transformers.WhisperTokenizer(vocab=vocabulary, merges=list(dict.fromkeys(merges)))
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL[1:]})
    tokenizer.set_prefix_tokens()
    return tokenizer


def make_speech_model(tokenizer: Any) -> Any:
    """Return a Whisper that knows English alone."""
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in SPECIAL}
    end = ids["<|endoftext|>"]
    config = transformers.WhisperConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=8, max_source_positions=50,
        max_target_positions=24, eos_token_id=end, pad_token_id=end, bos_token_id=end,
        decoder_start_token_id=ids["<|startoftranscript|>"], suppress_tokens=None, begin_suppress_tokens=[end],
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.WhisperForConditionalGeneration(config)
    # What Whisper's own `generate` asks is lost of a config that was made of the model's.
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=end, pad_token_id=end, bos_token_id=end, decoder_start_token_id=ids["<|startoftranscript|>"],
        is_multilingual=False, no_timestamps_token_id=ids["<|notimestamps|>"], begin_suppress_tokens=[end],
        suppress_tokens=[ids["<|startoftranscript|>"], ids["<|translate|>"], ids["<|notimestamps|>"]], max_length=24,
    )  # fmt: skip
    return model


def make_speech_folder(folder: Path) -> Path:
    """Write a pretrained model that hears one second of sound."""
    tokenizer = make_speech_tokenizer()
    make_speech_model(tokenizer).save_pretrained(folder)
    extractor = transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=SECONDS, sampling_rate=RATE)
    transformers.WhisperProcessor(extractor, tokenizer).save_pretrained(folder)
    return folder


def sound_of(said: str, rate: int = RATE) -> np.ndarray:
    """Return the tones of some words, three tenths of a second each."""
    times = np.arange(int(0.3 * rate)) / rate
    tones = [0.5 * np.sin(2 * np.pi * TONES[word] * times) for word in said.split()]
    return np.concatenate(tones).astype(np.float32)


def write_sounds(folder: Path, suffix: str = ".wav", rate: int = RATE) -> Path:
    """Write sounds, each with its transcript beside it, and a table of them all."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["file,text"]
    for number, said in enumerate(SAID):
        path = folder / f"{number}{suffix}"
        soundfile.write(path, sound_of(said, rate), rate)
        path.with_suffix(".txt").write_text(f"{said}\n", encoding="utf-8")
        rows.append(f"{path.name},{said}")
    (folder / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder
