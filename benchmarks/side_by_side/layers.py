"""What a model is made of, counted: used inside every worker, so it needs nothing but the model itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def count(model: Any) -> dict[str, Any]:
    """Return the number of parameters of a torch module, and the shape of each; shared ones count once."""
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    total = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": total, "layers": shapes}


def matrices(layers: Mapping[str, Sequence[int]]) -> str:
    """Return the shapes of all weight matrices in words, the largest first: `2 of 8000×256, 300×100`."""
    shapes = Counter(tuple(shape) for shape in layers.values() if len(shape) == 2)
    ordered = sorted(shapes.items(), key=lambda item: (-item[0][0] * item[0][1], item[0]))
    return ", ".join((f"{number} of " if number > 1 else "") + "×".join(map(str, shape)) for shape, number in ordered)
