"""How a process is set up for training, and what a bug report and a result page need to know of it."""

from __future__ import annotations

import ctypes
import os
import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from seqcritic.native import kernels, products

# What decides a number, a score's above all: networks, tokens, scores; then what shows it.
PACKAGES = (
    "seqcritic",
    "torch",
    "numpy",
    "tokenizers",
    "sacrebleu",
    "rapidfuzz",
    "rouge-score",
    "sacremoses",
    "transformers",
    "peft",
    "datasets",
    "pyarrow",
    "soundfile",
    "safetensors",
    "pydantic",
    "rich",
)
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of glibc's mallopt


def environment() -> dict[str, str]:
    """Return versions of what matters, cores, threads and whether there are compiled kernels."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    cores = {"cores": str(os.cpu_count()), "torch threads": str(torch.get_num_threads())}
    return found | cores | {"native kernels": kernels.describe(), "bfloat16 products": products.describe()}


def set_up_process(threads: int) -> None:
    """Use so many threads, and keep the memory of freed tensors for the next ones.

    The C library returns large buffers to the system at every free and takes fresh, zeroed pages for the next tensor: a
    tenth of an update with a vocabulary of words. Where the library has no such switch nothing changes.
    """
    torch.set_num_threads(threads)
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    set_option(_MMAP_MAX, 0)  # none by mmap, which gives a buffer back as soon as it is free
    set_option(_TRIM_THRESHOLD, 2**31 - 1)  # the end of the heap is kept too, up to 2 GiB of it
