"""The noise of the spelling task: each character is replaced with probability η by one drawn from the alphabet."""

from __future__ import annotations

import hashlib

import torch


def derive_seed(*parts: int | str) -> int:
    """Return a 63-bit seed that depends on every part: one independent stream for each purpose and position."""
    # A separator that no part has: (1, 23) and (12, 3) are different streams.
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def corrupt(characters: torch.Tensor, noise: float, num_characters: int, generator: torch.Generator) -> torch.Tensor:
    """Replace each id, with probability `noise`, by one drawn uniformly from 1..num_characters.

    The draw may return the character that stood there, as in the paper. `characters` holds no end tokens
    that matter: the caller restores padding.
    """
    # One draw for every character, whether it is replaced or not: the stream does not depend on the noise.
    coins = torch.rand(characters.shape, generator=generator)
    drawn = torch.randint(1, num_characters + 1, characters.shape, generator=generator)
    return torch.where(coins < noise, drawn, characters)
