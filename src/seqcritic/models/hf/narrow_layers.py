"""The linear layers of somebody else's model, with products in bfloat16 where they are asked for.

Autocast would do for whole models, but it makes the outputs of layers bfloat16 too and rounds all weights anew for
every token that is drawn: ours is faster (docs/speed.md). Attention between tokens, norms and activations stay float32.
"""

from __future__ import annotations

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from seqcritic.models.products import are_narrow, linear


class NarrowLinear(nn.Linear):
    """PyTorch's layer."""

    def forward(self, input: Tensor) -> Tensor:
        """Return W x + b."""
        return linear(input, self.weight, self.bias) if are_narrow(input, self.weight) else super().forward(input)


class NarrowConv1D(Conv1D):
    """The layer of GPT-2, whose matrix is the transpose of others'."""

    def forward(self, x: Tensor) -> Tensor:
        """Return xᵀ W + b."""
        return linear(x, self.weight.t(), self.bias) if are_narrow(x, self.weight) else super().forward(x)  # type: ignore[no-untyped-call]


LAYERS: dict[type[nn.Module], type[nn.Module]] = {nn.Linear: NarrowLinear, Conv1D: NarrowConv1D}


def replace_layers(model: nn.Module) -> None:
    """Let a model multiply by `products.linear`: its layers become of our classes, all they hold stays as it is."""
    for module in model.modules():
        # Of exactly these classes: one that is derived from them may compute something else.
        module.__class__ = LAYERS.get(type(module), type(module))
