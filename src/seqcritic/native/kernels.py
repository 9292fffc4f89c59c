"""The compiled kernels as functions of addresses, and whether they can be used.

They are used for float32 and float64 on a CPU where a C compiler is found; `SEQCRITIC_NATIVE=0` turns them off. What
they compute, on which sizes and strides, is said in kernels.c.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from seqcritic.native.library import NoLibrary, find_compiler, load

SWITCH = "SEQCRITIC_NATIVE"
TYPE_NAMES = {torch.float32: "float32", torch.float64: "float64"}
# ptrdiff_t and pointers: as plain integers ctypes would pass an address as a C int and cut it off.
KINDS = {"s": ctypes.c_ssize_t, "a": ctypes.c_void_p}


class Kernels:
    """The kernels of one type of numbers; their arguments are sizes and addresses, in the order of kernels.c."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.gate_forward = function_of(library, "gate_forward", "ss aaa s aaa s aa")
        self.gate_backward = function_of(library, "gate_backward", "ss aa s aaaa s a")
        self.attention_forward = function_of(library, "attention_forward", "ssss aaaaa s aaaa")
        self.attention_backward = function_of(library, "attention_backward", "ssss aaaa s aaaaa s aa")
        self.sum_of_products = function_of(library, "sum_of_products", "s aa ss aaa")


def function_of(library: ctypes.CDLL, name: str, signature: str) -> Callable[..., None]:
    """Return a function of the library; in its signature s is a size or stride, a the address of an array."""
    function: Callable[..., None] = ctypes.CFUNCTYPE(None, *(KINDS[kind] for kind in signature.replace(" ", "")))(
        (name, library)
    )
    return function


def switched_off() -> bool:
    """Whether compiled functions are not to be used."""
    return os.environ.get(SWITCH) == "0"


def kernels_for(tensor: Tensor) -> Kernels | None:
    """Return the kernels for tensors like this one, or None where PyTorch has to do the work."""
    # Asked at every call, so that tests compare both ways in one process.
    if switched_off() or tensor.device.type != "cpu":
        return None
    name = TYPE_NAMES.get(tensor.dtype)
    return None if name is None else _kernels(name)


@cache
def _kernels(type_name: str) -> Kernels | None:
    try:
        # `load` remembers no failure: without this cache every step would look for a compiler again.
        return Kernels(load(type_name))
    except NoLibrary:
        return None


def describe() -> str:
    """Say in a few words whether the loops on a CPU use the kernels, and if not, why."""
    if switched_off():
        return f"no, {SWITCH}=0"
    try:
        load(TYPE_NAMES[torch.float32])
        return f"yes, {find_compiler()[1]}"
    except NoLibrary as error:
        return f"no, {error}"
