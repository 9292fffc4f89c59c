"""A codec and a task that a stranger might write: sums of two numbers, with ids of their own for end and padding."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from seqcritic import Batch, Codec, EvaluationSet, SpecialTokens, Task
from seqcritic.contracts.batch import pad

SIGNS = "0123456789+"


class SumCodec(Codec):
    """Digits and the plus sign."""

    num_source_tokens = num_target_tokens = 14
    special = SpecialTokens(end=(11,), padding=12, unknown=13)

    def encode_sources(self, lines: Sequence[str]) -> tuple[Tensor, Tensor]:
        return pad(self.encode_references(lines), self.special)

    def encode_references(self, lines: Sequence[str]) -> list[list[int]]:
        return [[SIGNS.index(sign) if sign in SIGNS else 13 for sign in line] for line in lines]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.tokens(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        kept = ids[: list(ids).index(11)] if 11 in ids else ids
        return [SIGNS[number] if number < 11 else "?" for number in kept]

    def content(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> SumCodec:
        return cls()


class SumTask(Task):
    """Sums, each with a second reference that has a zero in front."""

    codec = SumCodec()

    def __init__(self, largest: int = 99) -> None:
        self.largest = largest

    def draw(self, size: int, *seed: object) -> tuple[list[str], list[tuple[str, str]]]:
        randomness = random.Random(repr(seed))
        pairs = [(randomness.randint(0, self.largest), randomness.randint(0, self.largest)) for _ in range(size)]
        return [f"{one}+{two}" for one, two in pairs], [(f"{one + two}", f"0{one + two}") for one, two in pairs]

    def training_batch(self, position: int, size: int, seed: int) -> Batch:
        return Batch.of(self.codec, *self.draw(size, "train", position, seed))

    def evaluation_set(self, split: str) -> EvaluationSet:
        return EvaluationSet.of(self.codec, *self.draw(300, split))

    def fingerprint(self) -> str:
        return f"sums up to {self.largest}"
