"""Versions, cores and threads: what a bug report and a result page need."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import torch

PACKAGES = ("seqcritic", "torch", "numpy", "pydantic", "safetensors", "rapidfuzz", "rich", "tensorboard")


def environment() -> dict[str, str]:
    """Return versions of what matters, cores and threads."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found | {"cores": str(os.cpu_count()), "torch threads": str(torch.get_num_threads())}
