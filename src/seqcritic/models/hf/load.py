"""Pretrained models from a folder or by name: configuration, tokenizer and weights; nothing is unpickled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
    AutoTokenizer,
    GenerationConfig,
    WhisperProcessor,
)
from transformers.utils import logging

from seqcritic.errors import UserError
from seqcritic.models.hf.conventions import WHISPER
from seqcritic.models.hf.settings import HuggingFaceSettings

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
WEIGHTS = "*.safetensors"
TOKENIZERS = ("tokenizer*", "vocab*", "*.model", "*.spm")


def load_configs(settings: HuggingFaceSettings) -> tuple[Any, Any]:
    """Return the model's config and its generation config."""
    place = settings.pretrained
    config = _load(AutoConfig.from_pretrained, place, "actor.pretrained")
    try:
        generation = GenerationConfig.from_pretrained(place)
    except OSError:  # it has none of its own
        generation = GenerationConfig.from_model_config(config)
    return config, generation


def load_tokenizer(settings: HuggingFaceSettings) -> Any:
    """Return the model's tokenizer, of Whisper its processor: feature extractor and tokenizer."""
    place, setting = settings.tokenizer or settings.pretrained, "tokenizer" if settings.tokenizer else "pretrained"
    hears = load_configs(settings)[0].model_type == WHISPER
    folder = Path(place)
    # The library would make one that knows no words, without saying so.
    if folder.is_dir() and not any(next(folder.glob(pattern), None) for pattern in TOKENIZERS):
        raise UserError(f"actor.{setting}: {place} has no tokenizer; give actor.tokenizer=FOLDER_OR_NAME")
    return _load((WhisperProcessor if hears else AutoTokenizer).from_pretrained, place, f"actor.{setting}")


def load_pretrained(settings: HuggingFaceSettings) -> Any:
    """Return the model, in float32."""
    place = settings.pretrained
    require_safetensors(place)
    config, _ = load_configs(settings)
    kind: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    kind = AutoModelForSpeechSeq2Seq if config.model_type == WHISPER else kind
    with _quietly():
        return _load(kind.from_pretrained, place, "actor.pretrained", use_safetensors=True, dtype=torch.float32)


def require_safetensors(place: str) -> None:
    """Refuse a folder whose weights could only be unpickled, which runs whatever code is in them."""
    folder = Path(place)
    # A name of the hub is decided there, by use_safetensors.
    if not folder.is_dir() or any(folder.glob(WEIGHTS)):
        return
    pickled = [path.name for pattern in PICKLED for path in sorted(folder.glob(pattern))]
    if pickled:
        raise UserError(
            f"actor.pretrained: {folder} has its weights only as a pickle ({pickled[0]}), which seqcritic does not "
            "open; where you trust it, AutoModel….from_pretrained(folder).save_pretrained(folder) writes safetensors"
        )


def _load(load: Callable[..., Any], place: str, setting: str, **options: Any) -> Any:
    try:
        return load(place, **options)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        if not Path(place).is_dir() and (place.startswith((".", "/")) or place.count("/") > 1):
            raise UserError(f"{setting}: no folder {place}; give the folder of the model, or its name") from None
        # The library's errors are paragraphs with links; the first words tell.
        told = " ".join(str(error).split())[:200]
        raise UserError(f"{setting}: cannot load {place}: {told}") from None


@contextmanager
def _quietly() -> Iterator[None]:
    """Show no bar of the library's while weights load."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
