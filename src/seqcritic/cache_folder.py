"""Where files that can be made again are kept: compiled kernels and encoded training text."""

from __future__ import annotations

import os
from pathlib import Path

from seqcritic.errors import UserError


def default_cache_directory() -> Path:
    """Return `$SEQCRITIC_CACHE`, else the folder seqcritic in `$XDG_CACHE_HOME`, else in ~/.cache."""
    if own := os.environ.get("SEQCRITIC_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared, "seqcritic")
    try:
        return Path.home() / ".cache" / "seqcritic"
    except RuntimeError:
        raise UserError("no home folder for the cache; set SEQCRITIC_CACHE to a folder for it") from None
