"""seqcritic trains sequence-to-sequence models for the score they are judged by."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

# For type checkers and editors alone; when the package runs, `__getattr__` below imports what is asked for.
if TYPE_CHECKING:
    from seqcritic.analysis.diagnose import diagnose
    from seqcritic.analysis.inspect import inspect
    from seqcritic.analysis.playground import playground
    from seqcritic.analysis.state_values import StateValues
    from seqcritic.comparing.compare import compare
    from seqcritic.comparing.gather import compare_runs
    from seqcritic.contracts.actor import Actor, SpecialTokens
    from seqcritic.contracts.batch import Batch, EvaluationSet
    from seqcritic.contracts.codec import Codec
    from seqcritic.contracts.critic import Critic
    from seqcritic.contracts.method import Method
    from seqcritic.contracts.method_registry import register_method
    from seqcritic.contracts.registry import register_actor, register_critic, register_score, register_task
    from seqcritic.contracts.score import Score
    from seqcritic.contracts.task import Task
    from seqcritic.data.pairs_in_memory import pairs
    from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
    from seqcritic.decoding.search import Search
    from seqcritic.errors import Interrupted, NonFiniteError, UserError
    from seqcritic.evaluation.run import evaluate
    from seqcritic.methods import losses
    from seqcritic.models.ensemble import EnsembleActor
    from seqcritic.models.hf.actor import HuggingFaceActor
    from seqcritic.report.pages import render_diagnosis, render_page
    from seqcritic.scores.shared.function import as_score
    from seqcritic.scores.weighted_sum import weighted
    from seqcritic.settings.io import load_recipe, recipe_names
    from seqcritic.settings.tree import Settings
    from seqcritic.training.callbacks import Callback
    from seqcritic.training.export import export
    from seqcritic.training.model import Model, load_model
    from seqcritic.training.train import train
    from seqcritic.training.trainer import Trainer

    __version__: str

# The same names again, as text: nothing has to be imported to know where they are.
_MODULES = {
    "Actor": "contracts.actor",
    "Batch": "contracts.batch",
    "Callback": "training.callbacks",
    "Codec": "contracts.codec",
    "Critic": "contracts.critic",
    "EvaluationSet": "contracts.batch",
    "EnsembleActor": "models.ensemble",
    "HuggingFaceActor": "models.hf.actor",
    "Interrupted": "errors",
    "Method": "contracts.method",
    "MinimumBayesRisk": "decoding.minimum_bayes_risk",
    "Model": "training.model",
    "NonFiniteError": "errors",
    "Score": "contracts.score",
    "Search": "decoding.search",
    "Settings": "settings.tree",
    "SpecialTokens": "contracts.actor",
    "StateValues": "analysis.state_values",
    "Task": "contracts.task",
    "Trainer": "training.trainer",
    "UserError": "errors",
    "as_score": "scores.shared.function",
    "weighted": "scores.weighted_sum",
    "compare": "comparing.compare",
    "compare_runs": "comparing.gather",
    "diagnose": "analysis.diagnose",
    "evaluate": "evaluation.run",
    "export": "training.export",
    "inspect": "analysis.inspect",
    "load_model": "training.model",
    "load_recipe": "settings.io",
    "pairs": "data.pairs_in_memory",
    "playground": "analysis.playground",
    "recipe_names": "settings.io",
    "register_actor": "contracts.registry",
    "register_critic": "contracts.registry",
    "register_method": "contracts.method_registry",
    "register_score": "contracts.registry",
    "register_task": "contracts.registry",
    "render_diagnosis": "report.pages",
    "render_page": "report.pages",
    "train": "training.train",
}

__all__ = [
    "Actor",
    "Batch",
    "Callback",
    "Codec",
    "Critic",
    "EnsembleActor",
    "EvaluationSet",
    "HuggingFaceActor",
    "Interrupted",
    "Method",
    "MinimumBayesRisk",
    "Model",
    "NonFiniteError",
    "Score",
    "Search",
    "Settings",
    "SpecialTokens",
    "StateValues",
    "Task",
    "Trainer",
    "UserError",
    "__version__",
    "as_score",
    "compare",
    "compare_runs",
    "diagnose",
    "evaluate",
    "export",
    "inspect",
    "load_model",
    "load_recipe",
    "losses",
    "pairs",
    "playground",
    "recipe_names",
    "register_actor",
    "register_critic",
    "register_method",
    "register_score",
    "register_task",
    "render_diagnosis",
    "render_page",
    "train",
    "weighted",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: torch takes seconds to load and help should not wait for it."""
    if name == "__version__":
        return version("seqcritic")
    if name == "losses":  # a module, not a name in one
        return import_module("seqcritic.methods.losses")
    if name not in _MODULES:
        raise AttributeError(f"module 'seqcritic' has no attribute '{name}'")
    return getattr(import_module(f"seqcritic.{_MODULES[name]}"), name)
