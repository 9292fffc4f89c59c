"""Splits by a hash of the source: no source is on two sides, and pairs that are added move none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def held_out_for(source: str, shares: Mapping[str, float]) -> str:
    """Return which split a source belongs to by its hash, where splits have shares of the training pairs."""
    place = int.from_bytes(hashlib.blake2b(source.strip().encode(), digest_size=8).digest(), "big") / 2**64
    for split, share in shares.items():
        if place < share:
            return split
        # The splits lie side by side in [0, 1): a share that is given to a later one moves none of an earlier.
        place -= share
    return "train"
