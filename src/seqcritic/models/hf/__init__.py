"""Hugging Face models as actors."""

from seqcritic.data.codecs import huggingface as _huggingface  # noqa: F401  # says so where the extra is missing
