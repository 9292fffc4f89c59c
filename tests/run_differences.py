"""How far two runs are apart that should have done the same."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
from torch import Tensor

from seqcritic.training.checkpoint import CheckpointFolder
from support import records

SCORES = ("valid_score", "train_score", "sampled_return", "held_out_explained_variance")


def losses(folder: Path) -> list[tuple[str, float]]:
    return [
        (name, value)
        for record in records(folder)
        for name, value in record.items()
        if name.endswith(("_loss", "_norm")) or name in SCORES
    ]


def weights(folder: Path) -> dict[str, Tensor]:
    latest = CheckpointFolder(folder / "checkpoints").latest()
    assert latest is not None
    return safetensors.torch.load((latest / "networks.safetensors").read_bytes())


def differences(one: Path, two: Path) -> tuple[float, float]:
    """Return the largest relative difference of two runs' losses, and of any of their weights."""
    first, second = losses(one), losses(two)
    assert [name for name, _ in first] == [name for name, _ in second]
    pairs = zip((value for _, value in first), (value for _, value in second), strict=True)
    theirs = weights(two)
    return max(abs(mine - other) / max(1.0, abs(mine)) for mine, other in pairs), max(
        float((tensor - theirs[name]).abs().max() / tensor.abs().max().clamp(min=1e-3))
        for name, tensor in weights(one).items()
    )
