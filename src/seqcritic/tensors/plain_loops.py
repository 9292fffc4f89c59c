"""Whether everything is computed by PyTorch's own operations, one after the other, instead of by our fused ones.

The plain form is what the equations say, and what the fast one is tested against. The switch stands here because both
recurrent models and losses over the vocabulary have a fast form, and neither needs to know the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_plain = False


def plain_loops() -> bool:
    """Whether the plain loops are asked for, or needed: mixed precision chooses a type for every operation."""
    # Operations with `out=`, and compiled kernels, do not go through autocast.
    return _plain or any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda", "mps"))


@contextmanager
def use_plain_loops() -> Iterator[None]:
    """Use PyTorch's graph of the straightforward loops in place of ours, for tests and benchmarks."""
    global _plain
    before, _plain = _plain, True
    try:
        yield
    finally:
        _plain = before
