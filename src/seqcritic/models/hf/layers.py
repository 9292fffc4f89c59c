"""The layers of somebody else's model, changed in place: narrow products, and states that are computed again.

**Products in bfloat16 where they are asked for.** Autocast would do for whole models, but it makes the outputs of
layers bfloat16 too and rounds all weights anew for every token that is drawn: ours is faster (docs/speed.md).
Attention between tokens, norms and activations stay float32.

**Layers whose states are computed again in the backward pass** (Chen et al. 2016). The library's own switch works in
training mode alone, which would drop units where nothing may be dropped, and leaves caches empty without a word. So
layers are wrapped here: one that is run without a cache is computed again, in the mode and with the random numbers of
the first time.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import Cache
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.pytorch_utils import Conv1D

from seqcritic.errors import UserError
from seqcritic.models.products import are_asked_for, are_narrow, bfloat16_products, linear


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


def compute_layers_again(model: nn.Module) -> None:
    """Wrap all layers of a model that can be computed again."""
    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    if not layers:
        raise UserError(f"actor.gradient_checkpointing: {type(model).__name__} has no layers for it; leave it false")
    for layer in layers:
        # The class and not the object: names of weights, hooks and whatever holds the layer stay as they are.
        layer.__class__ = _again(type(layer))


_KINDS: dict[type[nn.Module], type[nn.Module]] = {}


def _again(kind: type[nn.Module]) -> Any:
    """Return a class of layers like `kind` that are computed again; a copy of a model keeps its classes."""
    if kind not in _KINDS:

        class Again(kind):  # type: ignore[misc, valid-type]
            def __call__(self, *arguments: Any, **named: Any) -> Any:
                # Computed again, a layer would write its keys and values into the cache a second time.
                cached = any(isinstance(each, Cache) for each in (*arguments, *named.values()))
                if cached or not torch.is_grad_enabled():
                    return super().__call__(*arguments, **named)
                was_training, products = self.training, bfloat16_products if are_asked_for() else nullcontext

                def run(*arguments: Any, **named: Any) -> Any:
                    # By the backward pass somebody may have switched the mode; dropout has to be as it was.
                    now = self.training
                    self.train(was_training)
                    try:
                        with products():  # the backward pass, which runs this again, is not asked for narrow ones
                            return super(Again, self).__call__(*arguments, **named)
                    finally:
                        self.train(now)

                return checkpoint(run, *arguments, use_reentrant=False, **named)

        Again.__name__, Again.__qualname__ = kind.__name__, kind.__qualname__
        _KINDS[kind] = Again
    return _KINDS[kind]
