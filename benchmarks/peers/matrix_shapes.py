"""The matrix products of a likelihood update, bare: every weight matrix forward, and both products backward.

Shapes: B examples, S source and T target places, E embedding, H state, C = 2H memory, A attention, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from seqcritic.config import ActorSettings
from seqcritic.data.batch import Batch

NOTE = (
    "products: encoder on the tokens without padding, decoder on the padded batch, read-out on as many places as our "
    "update reads out; recurrent products one step at a time, their weight gradients as one product"
)


@dataclass(frozen=True)
class Layer:
    """A weight matrix [outputs, inputs] and the rows it is multiplied with: all at once, or step by step."""

    inputs: int
    outputs: int
    rows: tuple[int, ...]


def layers_of(settings: ActorSettings, vocabulary: int, batch: Batch, read_out_rows: int) -> list[Layer]:
    """Return the weight matrices of an actor with a bidirectional encoder."""
    embedding, hidden, attention = settings.embedding, settings.hidden, settings.attention
    memory = 2 * hidden
    rows, places, steps = len(batch), batch.sources.shape[1], batch.references.shape[1]
    lengths = batch.source_mask.sum(dim=1)
    alive = tuple(int((lengths > place).sum()) for place in range(places))
    every = (rows,) * (steps - 1)
    encoder = [Layer(embedding, 3 * hidden, (sum(alive),)), Layer(hidden, 3 * hidden, alive)] * 2
    decoder = [
        Layer(memory, attention, (rows * places,)),
        Layer(embedding, 3 * hidden, (rows * (steps - 1),)),
        Layer(memory, 3 * hidden, every),
        Layer(hidden, 3 * hidden + attention, (*every, rows)),
    ]
    features = hidden + memory
    if settings.tied:
        return [
            *encoder,
            *decoder,
            Layer(features, embedding, (read_out_rows,)),
            Layer(embedding, vocabulary, (read_out_rows,)),
        ]
    return [*encoder, *decoder, Layer(features, vocabulary, (read_out_rows,))]


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


class ReadOutRows(TorchDispatchMode):
    """Count the rows that are multiplied with the read-out's matrix while this mode is on."""

    def __init__(self, features: int, vocabulary: int) -> None:
        super().__init__()
        self.features, self.vocabulary = features, vocabulary
        self.rows = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look at the factors of a product, then do it."""
        if function in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            left, right = args[-2:]
            if right.shape == (self.features, self.vocabulary):
                self.rows += left.shape[0]
        return function(*args, **(kwargs or {}))
