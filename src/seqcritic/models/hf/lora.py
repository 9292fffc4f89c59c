"""Low-rank adapters (Hu et al. 2022), and parts of a model that are not trained.

Adapters are put into the model's own modules by peft. Base weights stay as they are: copies of the actor share them
(methods/build.py), and checkpoints hold a digest of them alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from seqcritic.errors import UserError
from seqcritic.models.hf.settings import LoraSettings

try:
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.tuners_utils import BaseTunerLayer
except ImportError:
    raise UserError("actor.lora needs the extra 'hf': pip install 'seqcritic[hf]'") from None


def add_adapters(model: nn.Module, settings: LoraSettings, generator: torch.Generator) -> None:
    """Put fresh adapters into a model; nothing but them is trained from now on. B is 0: at first nothing changes."""
    if any(isinstance(module, BaseTunerLayer) for module in model.modules()):
        raise UserError("actor.lora: the model has adapters already; load it anew, or leave lora out")
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]  # any number scales
        lora_dropout=settings.dropout,
        target_modules=None if settings.targets is None else list(settings.targets),
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator, device=generator.device)))
            inject_adapter_in_model(config, model)
    except ValueError as error:
        names = sorted({name.rpartition(".")[2] for name, each in model.named_modules() if isinstance(each, nn.Linear)})
        wanted = "the usual layers" if settings.targets is None else f"'{', '.join(settings.targets)}'"
        raise UserError(
            f"actor.lora.targets: no layer of the model is called {wanted}; its linear layers: {', '.join(names)}"
        ) from error


def merge_adapters(model: nn.Module) -> None:
    """Add the adapters of a model to its weights and take them out."""
    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            place, _, child = name.rpartition(".")
            setattr(model.get_submodule(place), child, module.get_base_layer())
    for attribute in ("peft_config", "active_adapter"):
        vars(model).pop(attribute, None)


def stop_training(model: Any, parts: Iterable[str]) -> None:
    """Stop training parts of a model; what another part shares, as a tied embedding, is trained with that."""
    for part in parts:
        if part == "embeddings":
            model.get_input_embeddings().requires_grad_(False)
            continue
        if not model.config.is_encoder_decoder:
            raise UserError("actor.freeze: a decoder-only model has no encoder; leave it out")
        others = (model.get_decoder(), model.get_output_embeddings())
        outside = {id(weight) for module in others for weight in module.parameters()}
        for weight in model.get_encoder().parameters():
            if id(weight) not in outside:
                weight.requires_grad_(False)


def digest_weights(weights: Iterable[tuple[str, Tensor]]) -> bytes:
    """Return a hash of named weights, as float32."""
    digest = hashlib.blake2b(digest_size=16)
    for name, weight in weights:
        digest.update(name.encode())
        digest.update(weight.detach().to("cpu", torch.float32).contiguous().numpy().tobytes())
    return digest.digest()
