"""One frozen, typed tree of settings. Unknown keys are refused; every fault names the dotted path.

A recipe is a YAML file of this tree; `section.key=value` on the command line overrides one leaf of it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.parts import ActorSettings, CriticSettings, OwnActorSettings, OwnCriticSettings, part_settings
from seqcritic.contracts.registry import ACTORS, CRITICS
from seqcritic.plugins import import_plugins
from seqcritic.settings.base import Count, Factor, Paths, Positive, Rate, Samples, Section, Seed, Several, Weight
from seqcritic.settings.data import DataSettings, SpellingSettings
from seqcritic.settings.methods import (
    MethodField,
    method_labels,
    method_settings,
    nearest_method,
    states_refused,
    typical_costs,
)
from seqcritic.settings.scores import EvaluationSettings, ScoreSettings

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["float32", "bfloat16", "float64"]


def actor_settings(values: Any = None) -> ActorSettings:
    """Validate a nested dictionary as the section of the actor's kind."""
    default = ActorSettings.model_fields["kind"].default
    if isinstance(values, dict) and values.get("pretrained") is not None and values.get("kind", default) == default:
        # A recipe for the default actor takes a pretrained one too; the sizes of the other mean nothing to it.
        meaningless = set(getattr(ACTORS.find(default).Settings, "model_fields", ()))
        values = {name: value for name, value in values.items() if name not in meaningless} | {"kind": "huggingface"}
    return part_settings({} if values is None else values, ACTORS, ActorSettings, OwnActorSettings)


def critic_settings(values: Any = None) -> CriticSettings:
    """Validate a nested dictionary as the section of the critic's kind."""
    if isinstance(values, dict) and values.get("kind") == "prompted":
        # A recipe for a recurrent critic takes this one too; the sizes of the other mean nothing to it.
        # What neither has stays, and is refused as a slip.
        known, of_gru = (set(getattr(CRITICS.find(kind).Settings, "model_fields", ())) for kind in ("prompted", "gru"))
        values = {name: value for name, value in values.items() if name in known or name not in of_gru}
    return part_settings({} if values is None else values, CRITICS, CriticSettings, OwnCriticSettings)


# SerializeAsAny: by the declared class, a dump would leave out what the section of the kind adds.
ActorField = Annotated[SerializeAsAny[ActorSettings], BeforeValidator(actor_settings)]
CriticField = Annotated[SerializeAsAny[CriticSettings], BeforeValidator(critic_settings)]


class FlatSettings(Section):
    """When a curve counts as flat."""

    epochs: Factor = Field(5.0, description="of the training examples, over which the best score has to improve")
    gain: Weight = Field(0.1, description="by less than so many points: the phase ends")


class PhaseSettings(Section):
    """One phase of Algorithm 2."""

    updates: Count
    epochs: Factor | None = Field(
        None, description="so many passes over the training examples, whatever `updates` says; null: `updates`"
    )
    learning_rate: Rate = 1e-3
    final_learning_rate: Rate | None = Field(None, description="reached linearly at the last update; null: constant")
    warm_up: Count = Field(0, description="so many first updates at a part of the rate, rising linearly to it")
    patience: Positive | None = Field(
        None,
        description="stop after so many evaluations without a better score (actor, train) or a higher TD error",
    )
    flat: FlatSettings | None = Field(
        None,
        description="stop when the score of valid (critic: its token_correlation) is flat: its best of the last "
        "`epochs` is better than the best before them by less than `gain`; null: no such rule",
    )


class ActorPhaseSettings(PhaseSettings):
    """Pre-training of the actor."""

    keep: Literal["best", "last"] = Field(
        "best",
        description="which actor goes on: the best on valid or the last; the likelihood may still improve much "
        "while the greedy score is level, and what follows builds on the likelihood",
    )


class CriticPhaseSettings(PhaseSettings):
    """Pre-training of the critic."""

    explained_variance: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="stop when the critic explains so much of the variance of held-out returns"
    )
    token_correlation: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="stop when its values of single tokens correlate so with the true ones, as `diagnose` measures "
        "them, on 64 validation examples; measured at every evaluation where this or `flat` is given",
    )


class PhasesSettings(Section):
    """Pre-train the actor by likelihood, pre-train the critic with the actor frozen, then train by the method."""

    actor: ActorPhaseSettings = ActorPhaseSettings(updates=200_000)
    critic: CriticPhaseSettings = CriticPhaseSettings(updates=30_000)
    train: PhaseSettings = PhaseSettings(updates=200_000, learning_rate=1e-4)


class TrainingSettings(Section):
    """How updates are made, evaluated and saved."""

    batch: Positive = Field(
        32, description="examples in memory at once, of each process that trains; an update has `accumulate` times them"
    )
    accumulate: Samples = Field(
        1, description="N: an update sums the gradients of N batches before its step, in the memory of one"
    )
    clip_norm: Factor | None = Field(50.0, description="largest gradient norm of a network")
    evaluate_every: Positive = Field(1000, description="updates between greedy evaluations on valid")
    evaluate_epochs: Factor | None = Field(
        None, description="passes over the training examples between evaluations, whatever `evaluate_every` says"
    )
    average: Samples = Field(
        1,
        description="N: the result is the mean weights of N evaluated actors of the last phase; 1: of the best",
    )
    average_of: Literal["best", "last"] = Field("best", description="which N of the last phase's evaluated actors")
    train_examples: Count = Field(
        0, description="so many fixed training examples are evaluated beside valid, for their curve alone; 0: none"
    )
    log_every: Positive = Field(100, description="updates averaged into one line of metrics.jsonl")
    checkpoint_seconds: Weight = Field(60.0, description="seconds between checkpoints")
    snapshot_every: Positive | None = Field(
        None, description="keep actor and critic of evaluations at every so many updates of phases.train (snapshots/)"
    )
    shard: bool = Field(
        False,
        description="spread a pretrained actor's weights, gradients and optimiser over the processes of torchrun, each "
        "of which gathers the weights for an update; for models that outgrow one device",
    )
    tracker: Literal["tensorboard", "wandb", "mlflow"] | None = Field(
        None, description="a program that is told what metrics.jsonl holds; each needs the extra of its name"
    )

    @property
    def update_size(self) -> int:
        """The examples of an update, of each process that trains."""
        return self.batch * self.accumulate


class LengthSettings(Section):
    """How long a prediction may grow, its end counted.

    In evaluation and in use: factor · source + extra tokens. In training, where rewards are learnt from: the reference
    and beyond_reference tokens.
    """

    factor: Weight = Field(2.0, description="times the source's tokens, its end token counted")
    extra: Positive = Field(10, description="so many tokens more")
    beyond_reference: Positive = Field(
        3, description="in training, tokens that a sample may have beyond its reference's, the end token counted"
    )


class StartSettings(Section):
    """Trained networks to start from: a finished run or a model folder."""

    actor: str | None = Field(None, description="skips phases.actor")
    critic: str | None = Field(None, description="skips phases.critic")


class CompareSettings(Section):
    """What `compare` runs and what it counts as equal compute."""

    methods: Paths = ("likelihood", "actor-critic+likelihood")
    budget: Positive | None = Field(
        None,
        description="compute after actor pre-training, in likelihood updates, the critic's pre-training included; "
        "null: what phases.critic and phases.train of actor-critic+likelihood cost",
    )
    costs: dict[str, Factor] = Field(
        default_factory=dict,
        description="cost of an update relative to a likelihood update, for 'critic' (its pre-training) and "
        "for each method (benchmarks/update_cost.py measures them); what is left out is measured when compare starts",
    )
    overrides: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="settings of single methods, as dotted keys"
    )
    beam: Several | None = Field(
        None,
        description="evaluate on test by beam search of this width too, its length reward tuned on valid; "
        "null: greedily alone",
    )

    @field_validator("costs", "overrides")
    @classmethod
    def _names_methods(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        known = list(typical_costs()) if info.field_name == "costs" else list(method_labels())  # costs: 'critic' too
        for name in value:
            if name not in known:
                hint = f"{nearest_method(name, known)}; known: {', '.join(known)}"
                raise ValueError(f"compare.{info.field_name}: unknown method '{name}'{hint}")
        return value

    def cost(self, label: str) -> float:
        """Return the cost of an update of a method, or of the critic's pre-training, in likelihood updates."""
        return self.costs[label] if label in self.costs else typical_costs()[label]


class Settings(Section):
    """A whole experiment."""

    name: Annotated[str, Field(pattern=r"^[^/\\]+$")] = "unnamed"
    description: str = ""
    seed: Seed = 1
    threads: Annotated[int, Field(gt=0, le=1024)] = 1
    device: DeviceName = Field("auto", description="cpu, cuda, mps, or auto: a CUDA device if there is one")
    precision: Precision = Field(
        "float32", description="bfloat16 for matrix products in bfloat16, where the processor or device is fast at it"
    )
    plugins: Paths = Field(
        (), description="modules of your own, imported first: the methods that they register can be named here"
    )
    data: DataSettings = SpellingSettings()
    # By factories: the sections come from the classes of kinds and methods, whose modules load torch.
    actor: ActorField = Field(default_factory=actor_settings)
    critic: CriticField = Field(default_factory=critic_settings)
    score: ScoreSettings = ScoreSettings()
    method: MethodField = Field(default_factory=method_settings)
    phases: PhasesSettings = PhasesSettings()
    training: TrainingSettings = TrainingSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    length: LengthSettings = LengthSettings()
    start: StartSettings = StartSettings()
    compare: CompareSettings = CompareSettings()

    @model_validator(mode="before")
    @classmethod
    def _import_plugins(cls, tree: Any) -> Any:
        # Before all else: which methods there are decides which settings there are.
        if isinstance(tree, dict):
            import_plugins(tree.get("plugins"))
        return tree

    @model_validator(mode="after")
    def _critic_can_add(self) -> Self:
        if self.critic.residual_on == "none":
            return self
        given = f"critic.residual_on={self.critic.residual_on}"
        # What is known of a token leaves out what the prefix has scored, which without shaping is still to come.
        if not self.score.shaping:
            raise ValueError(f"{given} needs score.shaping=true; set that, or critic.residual_on=none")
        # The values that are added are those which that method learns from, of the same scores.
        known = registered_methods()["optimal-completion"].traits.scores
        if self.critic.residual_on == "optimal-completion" and self.score.name not in known:
            raise ValueError(
                f"{given} knows the best completions of {' and '.join(known)} alone, not of {self.score.name}; set "
                "critic.residual_on=lookahead"
            )
        if self.method.name == "dagger":
            raise ValueError("critic.residual_on: dagger's expert follows the critic's network alone; leave it none")
        return self

    @model_validator(mode="after")
    def _method_can_learn(self) -> Self:
        known = self.method.traits.scores
        if known and self.score.name not in known:
            raise ValueError(
                f"score.name: {self.method.name} can learn from {' or '.join(known)} alone, not from "
                f"{self.score.name}; set score.name or choose another method.name"
            )
        return self

    @property
    def user_scores(self) -> dict[str, str]:
        """The functions of the user's own among all scores, by where they stand."""
        named = self.score.names | {f"evaluation.also.{place}": name for place, name in enumerate(self.evaluation.also)}
        return {path: name for path, name in named.items() if ":" in name}

    @model_validator(mode="after")
    def _critic_fits(self) -> Self:
        self.critic.check(self.actor, self.data.task)
        if not self.critic.values_tokens:
            if self.method.traits.follows_values:
                raise ValueError(states_refused(f"critic.kind: {self.critic.kind}", self.method.name))
            if self.phases.critic.token_correlation is not None:
                raise ValueError(
                    f"phases.critic.token_correlation: {self.critic.kind} has no values of tokens; set it null, and "
                    "phases.critic.explained_variance instead"
                )
        return self
