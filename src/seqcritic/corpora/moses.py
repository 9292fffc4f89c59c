"""The Moses tokenizer, through the sacremoses library.

It keeps `art.` and `5.` at the end of a sentence in one token as Moses did when the paper was written; later versions
of Moses split them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from seqcritic.errors import UserError


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """Return a function that puts spaces between the tokens of a sentence and escapes as Moses does (`&apos;`)."""
    try:
        from sacremoses import MosesTokenizer
    except ImportError:
        raise UserError(
            "the Moses tokenizer is missing; install it with: pip install 'seqcritic[prepare]' (or sacremoses)"
        ) from None
    tokenizer = MosesTokenizer(lang=language)

    def tokenize(sentence: str) -> str:
        return str(tokenizer.tokenize(sentence, return_str=True, escape=True))

    return tokenize


def moses_version() -> str:
    """Return the library and its version, for the record of what was done."""
    return f"sacremoses {version('sacremoses')}"
