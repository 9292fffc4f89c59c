"""The codec of a model that hears, Whisper: sources name sound files, references are their transcripts.

What the model hears of a sound, log-mel features, is computed once by its own feature extractor and kept below the
cache, by a digest of the sound and of the extractor's settings. Features have one length, silence filling up what a
sound lacks; a longer sound is refused, for the extractor would cut it without a word.

Shapes: B sounds, S frames, F features.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.codec import register_codec
from seqcritic.data.array_store import ArrayStore
from seqcritic.data.codecs.huggingface import HuggingFaceCodec, TextForm, tokenizer_from
from seqcritic.data.sounds import read_sound
from seqcritic.errors import UserError
from seqcritic.files import default_cache_directory


@register_codec("huggingface-speech")
class HuggingFaceSpeechCodec(HuggingFaceCodec):
    """Paths of sound files on one side, tokens of a pretrained model on the other."""

    def __init__(
        self, tokenizer: Any, special: SpecialTokens, num_tokens: int, extractor: Any, form: TextForm | None = None
    ) -> None:
        """Take a tokenizer and a feature extractor as their library made them."""
        super().__init__(tokenizer, special, num_tokens, True, form)
        self.extractor = extractor
        self.num_source_tokens = 0  # features

    def encode_sources(self, lines: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the features [B, S, F] of the sounds that lines name, and a mask [B, S] of all frames."""
        features = torch.from_numpy(np.stack([self._hear(line.strip()) for line in lines]))
        return features, torch.ones(features.shape[:2], dtype=torch.bool)

    def encode_references(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of transcripts, each with the space before its first word, as Whisper writes them."""
        return super().encode_references([f" {line.strip()}" for line in lines])

    def _hear(self, path: str) -> Any:
        """Return the features [S, F] of one sound, from the store or into it."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise UserError(f"{path}: cannot read the sound: {error.strerror or error}; a source is a path") from None
        # By its content: a sound that was moved or copied is found again.
        name = hashlib.blake2b(content, digest_size=16).hexdigest()
        found = self._store.get(name)
        if found is not None:
            return found
        rate, most = self.extractor.sampling_rate, self.extractor.n_samples
        samples = read_sound(content, rate, path)
        if len(samples) > most:
            raise UserError(
                f"{path}: {len(samples) / rate:.1f} seconds are longer than the {most / rate:g} that the model hears; "
                "cut the sound, or leave it out"
            )
        made = self.extractor(samples, sampling_rate=rate, return_tensors="np")["input_features"][0]
        features = np.ascontiguousarray(made.T, dtype=np.float32)  # [F, S] to [S, F], rows of frames
        self._store.put(name, features)
        return features

    @cached_property
    def _store(self) -> ArrayStore:
        told = json.dumps(self._extractor_settings, sort_keys=True)
        key = hashlib.blake2b(told.encode(), digest_size=12).hexdigest()
        return ArrayStore(default_cache_directory() / f"features-{key}")

    @cached_property
    def _extractor_settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads(self.extractor.to_json_string())
        # The class that the extractor was saved by decides no feature.
        return {name: value for name, value in settings.items() if name != "processor_class"}

    def source_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return nothing: what is heard has no tokens to be shown."""
        return []

    def content(self) -> dict[str, Any]:
        """Return the tokenizer's files, packed, the model's conventions and the extractor's settings."""
        content = super().content()
        del content["crosses"]  # no argument of this constructor: a model that hears is an encoder-decoder
        return content | {"extractor": self._extractor_settings}

    def save_pretrained(self, folder: Path) -> None:
        """Write tokenizer and feature extractor as the model's processor."""
        from transformers import WhisperProcessor  # behind the module that tells of a missing extra

        WhisperProcessor(self.extractor, self.tokenizer).save_pretrained(folder)  # type: ignore[no-untyped-call]

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the codec that `to_dict` described."""
        from transformers import WhisperFeatureExtractor

        tokenizer, files = tokenizer_from(stored["files"])
        special = SpecialTokens(**stored["special"] | {"end": tuple(stored["special"]["end"])})
        extractor = WhisperFeatureExtractor.from_dict(stored["extractor"])
        codec = cls(tokenizer, special, stored["num_tokens"], extractor, TextForm(**stored["form"]))
        codec.files = files
        return codec

    def digest(self) -> str:
        """Return a short hash of all that decides features and ids."""
        told = super().digest() + json.dumps(self._extractor_settings, sort_keys=True)
        return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()
