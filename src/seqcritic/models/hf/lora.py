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

KIN_OF_BART = ("marian", "mbart", "m2m_100", "pegasus", "whisper")
# Beyond the models that peft itself has usual layers for, BART among them: the same ones of its kin.
USUAL = dict.fromkeys(KIN_OF_BART, ("q_proj", "v_proj"))


def add_adapters(model: Any, settings: LoraSettings, generator: torch.Generator, frozen: Iterable[str] = ()) -> None:
    """Put fresh adapters into a model; nothing but them is trained from now on. B is 0: at first nothing changes.

    A part that is `frozen` gets none.
    """
    if any(isinstance(module, BaseTunerLayer) for module in model.modules()):
        raise UserError("actor.lora: the model has adapters already; load it anew, or leave lora out")
    targets = settings.targets or USUAL.get(model.config.model_type)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]  # any number scales
        lora_dropout=settings.dropout,
        target_modules=None if targets is None else list(targets),
        exclude_modules=_names_in(model, model.get_encoder()) if "encoder" in frozen else None,
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(int(torch.randint(1 << 62, (), generator=generator, device=generator.device)))
            inject_adapter_in_model(config, model)
    except ValueError as error:
        names = sorted({name.rpartition(".")[2] for name, each in model.named_modules() if isinstance(each, nn.Linear)})
        fault = f"no layer of the model is called '{', '.join(targets)}'" if targets else "none are usual for the model"
        raise UserError(f"actor.lora.targets: {fault}; name some of its linear layers: {', '.join(names)}") from error


def _names_in(model: nn.Module, part: nn.Module) -> list[str]:
    """Return the full names of the linear layers within a part of a model."""
    inside = {id(module) for module in part.modules()}
    return [name for name, module in model.named_modules() if id(module) in inside and isinstance(module, nn.Linear)]


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
