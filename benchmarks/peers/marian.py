"""The Marian-shaped models of both sides, the same weights from a seed, and their pairs. Needs transformers alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from side_by_side.workloads import NOISE, Pair

END = 0
NEVER = -1e4
BATCH = 16
SHORTEST, LONGEST = 5, 30  # of targets, without the end token
NUM_PAIRS = 6_400  # so that those who sort by length find enough to sort


@dataclass(frozen=True)
class Size:
    """Sizes of a model with as many layers in its decoder as in its encoder."""

    width: int
    layers: int
    heads: int
    vocabulary: int

    @property
    def padding(self) -> int:
        """Return the last id, which also starts the decoder, as in this family."""
        return self.vocabulary - 1


SIZES = {"base": Size(512, 6, 8, 32_000), "small": Size(128, 2, 4, 8_000)}


def make_model(name: str, ends: bool = True) -> Any:
    """Return a model without dropout; one that never `ends` writes as many tokens as it may."""
    size = SIZES[name]
    sides = {
        f"{side}_{what}": value
        for side in ("encoder", "decoder")
        for what, value in (("layers", size.layers), ("attention_heads", size.heads), ("ffn_dim", 4 * size.width))
    }
    torch.manual_seed(1)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=size.vocabulary,
            decoder_vocab_size=size.vocabulary,
            d_model=size.width,
            dropout=0.0,
            activation_function="swish",
            scale_embedding=True,
            pad_token_id=size.padding,
            decoder_start_token_id=size.padding,
            eos_token_id=END,
            bos_token_id=None,
            forced_eos_token_id=None,
            max_position_embeddings=256,
            **sides,
        )
    )
    model.final_logits_bias[0, size.padding] = NEVER  # as trained ones of this family have it
    if not ends:
        model.final_logits_bias[0, END] = NEVER
    return model


def make_pairs(name: str, number: int, length: int | None = None) -> list[Pair]:
    """Return (source, target) pairs of ids, without end tokens, of lengths from the whole range or of one length."""
    generator, size = random.Random(name), SIZES[name]

    def token() -> int:
        return generator.randrange(END + 1, size.padding)

    pairs = []
    for _ in range(number):
        target = [token() for _ in range(generator.randint(SHORTEST, LONGEST) if length is None else length)]
        pairs.append(([token() if generator.random() < NOISE else each for each in target], target))
    return pairs
