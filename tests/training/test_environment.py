"""What a bug report says of the libraries."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import seqcritic
from seqcritic.training.environment import PACKAGES, environment

ROOMS = (
    "scores",
    "evaluation",
    "decoding",
    "data",
    "models",
    "methods",
    "tensors",
    "corpora",
)  # where numbers are made


def foreign_modules() -> set[str]:
    """Return the top modules that are no part of Python's library, of all imports in those rooms."""
    found = set()
    for room in ROOMS:
        for path in (Path(seqcritic.__file__).parent / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found.add(node.module.partition(".")[0])
    return found - {*sys.stdlib_module_names, "seqcritic"}


def test_every_library_that_decides_a_number_is_listed():
    distributions = packages_distributions()
    found = {name for module in foreign_modules() for name in distributions.get(module, [])}
    needed = {name.lower().replace("_", "-") for name in found}
    assert {"torch", "sacrebleu", "rapidfuzz", "tokenizers"} <= needed
    assert needed <= {*PACKAGES}, sorted(needed - {*PACKAGES})
    assert {*PACKAGES} <= environment().keys()
