"""The matrix products of a likelihood update, bare: every weight matrix forward, and both products backward.

Shapes: B examples, T places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.models.gru.settings import GruActorSettings

NOTE = (
    "products: only for tokens that count, none for padding; recurrent products one step at a time, their weight "
    "gradients as one product"
)


@dataclass(frozen=True)
class Layer:
    """A weight matrix [outputs, inputs] and the rows it is multiplied with: all at once, or step by step."""

    inputs: int
    outputs: int
    rows: tuple[int, ...]


def layers_of(settings: GruActorSettings, vocabulary: int, batch: Batch) -> list[Layer]:
    """Return the weight matrices of an actor with a bidirectional encoder."""
    embedding, hidden, attention = settings.embedding, settings.hidden, settings.attention
    memory = 2 * hidden
    sources, targets = alive(batch.source_mask), alive(batch.reference_mask)
    encoder = [Layer(embedding, 3 * hidden, (sum(sources),)), Layer(hidden, 3 * hidden, sources)] * 2
    decoder = [
        Layer(memory, attention, (sum(sources),)),
        Layer(embedding, 3 * hidden, (sum(targets[1:]),)),
        Layer(memory, 3 * hidden, targets[1:]),
        Layer(hidden, 3 * hidden + attention, targets),
    ]
    features, rows = hidden + memory, (sum(targets),)
    width = embedding if settings.tied else settings.output_width
    if width is None:
        return [*encoder, *decoder, Layer(features, vocabulary, rows)]
    return [*encoder, *decoder, Layer(features, width, rows), Layer(width, vocabulary, rows)]


def alive(mask: Tensor) -> tuple[int, ...]:
    """Return how many rows of a mask [B, T] have a token at each place."""
    return tuple(mask.sum(dim=0).tolist())


class Products:
    """All products of some layers, in buffers that are made once."""

    def __init__(self, layers: list[Layer]) -> None:
        self.calls: list[tuple[Tensor, Tensor, Tensor]] = []
        for layer in layers:
            total = sum(layer.rows)
            weight = torch.randn(layer.outputs, layer.inputs)
            inputs, outputs = torch.randn(total, layer.inputs), torch.randn(total, layer.outputs)
            forward, backward = torch.empty_like(outputs), torch.empty_like(inputs)
            first = 0
            for rows in layer.rows:
                part = slice(first, first + rows)
                self.calls.append((inputs[part], weight.t(), forward[part]))
                self.calls.append((outputs[part], weight, backward[part]))
                first += rows
            self.calls.append((outputs.t(), inputs, torch.empty_like(weight)))

    @property
    def operations(self) -> int:
        """Return multiplications and additions of one run."""
        return sum(2 * left.shape[0] * left.shape[1] * right.shape[1] for left, right, _ in self.calls)

    def describe(self) -> dict[str, Any]:
        """Return the amount of work."""
        return {"operations": self.operations, "note": NOTE}

    def run(self, steps: int) -> dict[str, Any]:
        """Do all products so many times."""
        for _ in range(steps):
            for left, right, result in self.calls:
                torch.mm(left, right, out=result)
        return {}
