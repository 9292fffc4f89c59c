"""Where and how precisely networks compute: the only module that knows the kinds of devices.

Weights, optimisers and losses are float32 (float64 where asked for). With `bfloat16` the matrix products run in it: on
a CPU by models/products.py, elsewhere by autocast, with the weights rounded on the way in.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

import torch

from seqcritic.errors import UserError
from seqcritic.models.products import bfloat16_products
from seqcritic.native import products
from seqcritic.settings.tree import DeviceName, Precision


def choose_device(name: DeviceName, local_rank: int = 0) -> torch.device:
    """Return the device of a name; of several GPUs, the one of this process. `auto` is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        number = torch.cuda.device_count()
        if number == 0:
            raise UserError("device: there is no CUDA device here; give device=cpu")
        # NCCL takes one process a GPU; two that shared one would fail at their first exchange.
        if local_rank >= number:
            raise UserError(f"device: {local_rank + 1} processes on this machine, but {number} CUDA device(s)")
        return torch.device("cuda", local_rank)
    if name == "mps" and not torch.backends.mps.is_available():
        raise UserError("device: there is no MPS device here; give device=cpu")
    return torch.device(name)


def weight_type(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the type of the weights, or say that the device cannot compute so."""
    if precision == "float64" and device.type == "mps":
        raise UserError("precision: MPS devices have no float64; give precision=float32")
    if precision == "bfloat16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        raise UserError("precision: this GPU has no bfloat16; give precision=float32")
    # Weights are never bfloat16: its eight bits of precision would lose the small steps of an optimiser.
    return torch.float64 if precision == "float64" else torch.float32


def computing(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which the loss of an update is computed."""
    if precision != "bfloat16":
        return nullcontext()
    if device.type == "cpu":
        return bfloat16_products()
    # No cache: a weight rounded while sampling, without a graph, would be taken from it for the loss.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)


def predicting(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which predictions are made; autocast is never used for them."""
    narrow = precision == "bfloat16" and device.type == "cpu"
    return bfloat16_products(predicting=True) if narrow else nullcontext()


def describe_precision(precision: Precision, device: torch.device) -> str | None:
    """Say whether narrow products are faster here; None where there is nothing to say."""
    if precision != "bfloat16" or device.type != "cpu":
        return None
    told = products.describe()
    return f"precision: bfloat16, fast products: {told}" + ("" if told.startswith("yes") else "; float32 is no slower")


def require_memory(device: torch.device, num_bytes: int) -> None:
    """Refuse networks for which a device has not the memory, before the system ends the process without a word."""
    # A GPU has memory of its own, a CPU and an MPS device have the machine's.
    room = (
        torch.cuda.get_device_properties(device).total_memory
        if device.type == "cuda"
        else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    )
    if num_bytes > room:
        raise UserError(
            f"to train these networks takes at least {num_bytes / 1e9:,.0f} GB of memory, and {device.type} has "
            f"{room / 1e9:,.0f} GB; make actor.hidden, actor.embedding, actor.attention and those of critic smaller"
        )
