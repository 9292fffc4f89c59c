"""What a model is made of, counted: used inside every worker, so it needs nothing but the model itself."""

from __future__ import annotations

from typing import Any


def count(model: Any) -> dict[str, Any]:
    """Return the number of parameters of a torch module, and the shape of each; shared ones count once."""
    shapes = {name: list(parameter.shape) for name, parameter in model.named_parameters()}
    total = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": total, "layers": shapes}
