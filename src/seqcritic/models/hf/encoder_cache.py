"""What a frozen encoder makes of a source, computed once and kept below the cache.

An encoder that nothing trains says the same of a source in every epoch of every run. Its outputs are found again by a
digest of the source and of the encoder's weights, so that copies of the actor, other runs and other methods share them.
They are made without dropout and in full precision; half of it, which is enough for Whisper, takes half of the disk.

Shapes: B rows, S tokens or frames of a source, R positions of the encoder's output, H its size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from seqcritic.data.array_store import ArrayStore
from seqcritic.errors import UserError
from seqcritic.files import default_cache_directory
from seqcritic.models.hf.lora import digest_weights
from seqcritic.models.products import float32_products

KeptAs = Literal["float32", "float16"]


class EncoderCache:
    """The outputs of one frozen encoder."""

    def __init__(self, encoder: nn.Module, kept_as: KeptAs) -> None:
        """Refuse an encoder of which any weight is trained."""
        trained = [name for name, weight in encoder.named_parameters() if weight.requires_grad]
        if trained:
            raise UserError(
                f"actor.encoder_cache: {trained[0]} of the encoder is trained, so that its outputs change; give "
                "actor.freeze=encoder, with a shared embedding actor.freeze=encoder,embeddings"
            )
        self._kept_as = kept_as
        key = hashlib.blake2b(digest_weights(encoder.named_parameters()) + kept_as.encode(), digest_size=12).hexdigest()
        self._store = ArrayStore(default_cache_directory() / f"encoded-{key}")

    @torch.no_grad()
    def read(
        self, encoder: nn.Module, sources: Tensor, mask: Tensor, encode: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Return the outputs [B, R, H] of sources with a mask [B, S]; those not yet known come from `encode`.

        Where ids are read, R is S and outputs beyond the mask are 0.
        """
        names = [_name(source[own]) for source, own in zip(sources, mask, strict=True)]
        found = [self._store.get(name) for name in names]
        missing = [row for row, output in enumerate(found) if output is None]
        if missing:
            for row, output in zip(missing, self._make(encoder, sources[missing], mask[missing], encode), strict=True):
                self._store.put(names[row], output)
                found[row] = output
        # What was made just now is read as it is kept: a run that begins with a full cache goes the same way.
        rows = [torch.from_numpy(np.array(output, np.float32)) for output in found]
        weight = next(encoder.parameters())
        outputs = pad_sequence(rows, batch_first=True).to(weight)
        beyond = mask.shape[1] - outputs.shape[1] if sources.dim() == 2 else 0
        return nn.functional.pad(outputs, (0, 0, 0, beyond)) if beyond else outputs

    def _make(
        self, encoder: nn.Module, sources: Tensor, mask: Tensor, encode: Callable[[Tensor, Tensor], Tensor]
    ) -> list[Any]:
        was_training = encoder.training
        encoder.eval()
        try:
            with torch.autocast(sources.device.type, enabled=False), float32_products():
                made = encode(sources, mask)
        finally:
            encoder.train(was_training)
        own = made if sources.dim() > 2 else [row[kept] for row, kept in zip(made, mask, strict=True)]
        return [row.cpu().numpy().astype(self._kept_as) for row in own]


def _name(source: Tensor) -> str:
    return hashlib.blake2b(source.cpu().contiguous().numpy().tobytes(), digest_size=16).hexdigest()
