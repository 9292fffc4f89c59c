"""seqcritic trains sequence-to-sequence models for the score they are judged by."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqcritic.comparing.compare import compare
    from seqcritic.config import Settings
    from seqcritic.contracts.method_registry import register_method
    from seqcritic.errors import Interrupted, NonFiniteError, UserError
    from seqcritic.report.pages import render_page
    from seqcritic.settings_io import load_recipe, recipe_names
    from seqcritic.training.callbacks import Callback
    from seqcritic.training.model import Model, load_model
    from seqcritic.training.run_evaluation import evaluate
    from seqcritic.training.train import train

_PLACES = {
    "Callback": "training.callbacks",
    "Interrupted": "errors",
    "Model": "training.model",
    "NonFiniteError": "errors",
    "Settings": "config",
    "UserError": "errors",
    "compare": "comparing.compare",
    "evaluate": "training.run_evaluation",
    "load_model": "training.model",
    "load_recipe": "settings_io",
    "recipe_names": "settings_io",
    "register_method": "contracts.method_registry",
    "render_page": "report.pages",
    "train": "training.train",
}

__all__ = [
    "Callback",
    "Interrupted",
    "Model",
    "NonFiniteError",
    "Settings",
    "UserError",
    "compare",
    "evaluate",
    "load_model",
    "load_recipe",
    "recipe_names",
    "register_method",
    "render_page",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: torch takes seconds to load and help should not wait for it."""
    if name not in _PLACES:
        raise AttributeError(f"module 'seqcritic' has no attribute '{name}'")
    return getattr(import_module(f"seqcritic.{_PLACES[name]}"), name)
