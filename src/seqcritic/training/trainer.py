"""Training from Python: an actor, a task, a score and a method, composed.

    trainer = Trainer(actor, task, "bleu", "actor-critic+likelihood", out="runs/mine", settings={"training.batch": 16})
    model = trainer.train()

The same call again resumes from the newest checkpoint. The run's folder is as that of a recipe: it stores how each part
is built (contracts/parts.py), so that `evaluate`, `report`, `export` and the command line take it; a part that cannot
be described has to be passed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.method import Method
from seqcritic.contracts.method_registry import register_method, registered_methods
from seqcritic.contracts.parts import OwnActorSettings, OwnCriticSettings, describe_part
from seqcritic.contracts.score import Score
from seqcritic.contracts.task import Task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score, build_weighted
from seqcritic.models.build import build_actor, build_critic
from seqcritic.progress import set_up_logging
from seqcritic.scores.shared.function import FunctionScore, as_score
from seqcritic.scores.weighted_sum import Weighted
from seqcritic.settings.data import OBJECT
from seqcritic.settings.io import override, settings_from, with_method
from seqcritic.settings.scores import WEIGHTED_SUM
from seqcritic.settings.tree import Settings
from seqcritic.training.callbacks import Callback
from seqcritic.training.learner import MakeOptimiser, adam, weights_generator
from seqcritic.training.model import Model, load_model
from seqcritic.training.parts import Parts
from seqcritic.training.train import train_in


class Trainer:
    """Trains an actor of one's own in a folder, and goes on there when it is composed again."""

    def __init__(
        self,
        actor: Actor | str,
        task: Task,
        score: str | Score | Weighted | Callable[..., Any],
        method: str | type[Method] = "actor-critic",
        *,
        critic: Critic | None = None,
        out: str | Path,
        settings: Settings | Mapping[str, Any] | None = None,
        optimiser: MakeOptimiser = adam,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        """Compose a run.

        `actor`: an Actor, or a kind, such as `gru`, that is built for the task by what `settings` say under `actor`.
        `score`: a name of docs/scores.md, a Score, a function of texts, or `weighted` of several. `method`: a name,
        with `+likelihood` for the mixture, or a class. `critic`: where the method needs one, by default what `settings`
        say under `critic`, the recurrent one. `settings`: what else a recipe says, by dotted keys or nested.
        `optimiser`: makes one of parameters; the learning rate is set at every update.
        """
        set_up_logging()
        _require(isinstance(actor, Actor | str), "actor", actor, "an Actor, nor the name of one")
        _require(isinstance(task, Task), "task", task, "a Task; seqcritic.pairs makes one of pairs")
        _require(critic is None or isinstance(critic, Critic), "critic", critic, "a Critic")
        named = isinstance(score, str | Score | Weighted) or callable(score)
        _require(named, "score", score, "the name of a score, a Score or a function of texts")
        self.out = Path(out)
        self.optimiser, self.callbacks = optimiser, callbacks
        tree = _tree(settings)
        if isinstance(actor, str):
            tree["actor"] = {**tree.get("actor", {}), "kind": actor}
        else:
            tree["actor"] = describe_part(actor, OwnActorSettings).model_dump(mode="json")
            # An actor keeps the limits it came with, unless settings say others.
            tree.setdefault("length", {"factor": actor.limits.factor, "extra": actor.limits.extra})
        if critic is not None:
            tree["critic"] = describe_part(critic, OwnCriticSettings).model_dump(mode="json")
        tree["data"] = task.section()
        tree["score"] = {**tree.get("score", {}), **_described_score(score)}
        label = _label(method)
        tree["method"] = {**tree.get("method", {}), "name": label.partition("+")[0]}  # what a critic must fit
        self.settings = with_method(settings_from(tree), label)
        if isinstance(score, Weighted):
            chosen: Score = build_weighted(score, self.settings, task.codec)
        else:
            chosen = build_score(self.settings, task.codec) if isinstance(score, str) else as_score(score)
        # Drawn from in the order of `build_networks`: the actor, then the critic, as the same recipe would.
        weights = weights_generator(self.settings)
        if isinstance(actor, str):
            actor = build_actor(self.settings, task.codec.num_source_tokens, task.codec.num_target_tokens, weights)
        # Its room stays as it is: that is the actor's own, no setting.
        actor.limits = replace(actor.limits, **dict(self.settings.length))
        if critic is None and self.settings.method.needs_critic:
            critic = build_critic(self.settings, actor, weights)
        self.parts = Parts(actor, task, chosen, critic)

    def train(self) -> Model:
        """Train to the end, or on from where an earlier call was interrupted; return the model, with the best actor.

        The actor that was passed is that of the model.
        """
        train_in(self.out, self.settings, lambda processes: self.parts, self.callbacks, self.optimiser)
        actor, task, score, critic = self.parts.actor, self.parts.task, self.parts.score, self.parts.critic
        return load_model(self.out, self.settings.device, actor=actor, critic=critic, task=task, score=score)


def _require(right: bool, name: str, given: object, wanted: str) -> None:
    if not right:
        raise UserError(f"{name}: {type(given).__name__} is not {wanted}")


def _tree(settings: Settings | Mapping[str, Any] | None) -> dict[str, Any]:
    if isinstance(settings, Settings):
        return settings.model_dump(mode="json")
    tree: dict[str, Any] = {}
    override(tree, settings or {})
    return tree


def _label(method: str | type[Method]) -> str:
    """Return the name of a method; a class that is not known yet is registered."""
    if isinstance(method, str):
        return method
    if method not in registered_methods().values():
        register_method(method)
    return method.name


def _described_score(score: str | Score | Weighted | Callable[..., Any]) -> dict[str, Any]:
    """Return what settings say of a score: its parts, where there are several, and its name."""
    if not isinstance(score, Weighted):
        return {"name": _name_of_score(score)}
    parts = [{"name": _name_of_score(part), "weight": weight} for part, weight in score.parts]
    # One part that cannot be named leaves the sum without a description.
    if any(part["name"] == OBJECT for part in parts):
        return {"name": OBJECT}
    return {"name": WEIGHTED_SUM, "parts": parts}


def _name_of_score(score: str | Score | Callable[..., Any]) -> str:
    """Return how settings name a score: as it is named, by `module:function`, or as an object to be passed again."""
    if isinstance(score, str):
        return score
    if isinstance(score, Score) and not isinstance(score, FunctionScore):
        return OBJECT  # its options are its own
    function = score.function if isinstance(score, FunctionScore) else score
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    # A lambda, a method and an inner function have a name, but not one that importing finds.
    importable = module not in ("", "__main__") and name.isidentifier()
    return f"{module}:{name}" if importable else OBJECT
