"""Docstrings of the package are plain text with `names` in backticks; Sphinx reads reStructuredText."""

from __future__ import annotations

import re


def from_plain_text(app: object, what: str, name: str, found: object, options: object, lines: list[str]) -> None:
    """Escape in place what means something to Sphinx and nothing to us: |Y|, θ_t, a*b; mark names as code."""
    parts = re.split(r"(`+[^`]+`+)", "\n".join(lines))
    # An escaped space ends code where a letter follows it, as in `name`s.
    lines[:] = re.sub(r"``(?=\w)(?<=\w``)", r"``\\ ", "".join(map(_escape, parts))).split("\n")


def _escape(part: str) -> str:
    return f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([\\*|_`])", r"\\\1", part)
