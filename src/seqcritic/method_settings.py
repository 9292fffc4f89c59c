"""The methods by name, what each needs beside the actor, and their settings."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from seqcritic.bounds import LARGEST
from seqcritic.sections import Count, Factor, Positive, Rate, Samples, Section, Several, Share, Weight

MIXED = "+likelihood"
PAPER_LIKELIHOOD_WEIGHT = 0.1


class Traits(NamedTuple):
    """What the rest of the program must know of a method.

    Costs are typical ones of an update, alone and with the likelihood mixed in, in likelihood updates: `train` counts
    its compute by them where `compare.costs` gives none; `compare` measures instead.
    """

    cost: float
    mixed_cost: float
    needs_critic: bool = False
    needs_baseline: bool = False
    delays_actor: bool = False
    takes_correction: bool = False


METHODS = {
    "likelihood": Traits(1.0, 1.0),
    "reinforce": Traits(1.5, 2.2, needs_baseline=True),
    "reinforce-critic": Traits(3.0, 3.6, needs_critic=True),
    "actor-critic": Traits(3.2, 3.8, needs_critic=True, delays_actor=True, takes_correction=True),
    "reinforce-multisample": Traits(3.4, 4.2),
    "self-critical": Traits(1.9, 2.5),
    "scheduled-sampling": Traits(1.3, 1.8),
    "mixer": Traits(1.5, 2.1, needs_baseline=True),
    "minimum-risk": Traits(9.1, 9.1),
    "raml": Traits(1.4, 1.9),
    "entropy-actor-critic": Traits(3.0, 3.5, needs_critic=True, delays_actor=True, takes_correction=True),
    "dagger": Traits(2.9, 3.6, needs_critic=True),
    "direct-loss": Traits(4.1, 4.8),
    "beam-search-optimization": Traits(3.0, 3.1),
}
MIXED_LABELS = tuple(name + MIXED for name in METHODS if name != "likelihood")
LABELS = (*METHODS, *MIXED_LABELS)
TYPICAL_COSTS = (
    {"critic": 2.1}
    | {name: traits.cost for name, traits in METHODS.items()}
    | {label: METHODS[label.removesuffix(MIXED)].mixed_cost for label in MIXED_LABELS}
)


def _known(name: str) -> str:
    if name not in METHODS:
        hint = "; the mixture is method.likelihood_weight=0.1" if name in LABELS else ""
        raise ValueError(f"method.name: unknown method '{name}'{hint}; known: {', '.join(METHODS)}")
    return name


def _share_or_auto(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value != "auto" and not (is_number and 0 <= value <= 1):
        raise ValueError(f"method.correction: a number from 0 to 1, or auto, not {value!r}")
    return value


class ReinforceMultisampleSettings(Section):
    """REINFORCE with the other samples as the baseline."""

    samples: Several = Field(4, description="M: samples for each example; instead of method.samples")


class ScheduledSamplingSettings(Section):
    """How the share ε of reference tokens among the inputs decays from the first update of the phase to its last."""

    decay: Literal["linear", "exponential", "inverse-sigmoid"] = Field(
        "inverse-sigmoid", description="the curve of ε, the chance that an input is the reference's token"
    )
    final: Rate = Field(0.25, description="ε at the phase's end; 1 is likelihood")
    steepness: Annotated[float, Field(ge=1, le=LARGEST, allow_inf_nan=False)] = Field(
        100.0, description="k of the inverse sigmoid, which starts at ε = k / (k + 1)"
    )


class MixerSettings(Section):
    """How fast REINFORCE takes over from the sequence's end."""

    step: Count = Field(
        2, description="Δ: tokens that go over to REINFORCE at each stage; 2 in the source, 3 for its translation"
    )


class MinimumRiskSettings(Section):
    """The subset over which the risk is taken, and how sharp the distribution on it is."""

    samples: Samples = Field(
        10, description="n: samples for each example, besides the reference; 100 in the source, at ten times the cost"
    )
    sharpness: Factor = Field(5e-3, description="α; 5e-3 in the source")


class RamlSettings(Section):
    """How far the targets are from the references."""

    temperature: Share = Field(
        0.85, description="τ of exp(−d (1 + ln v) / τ), d the edit distance, v the number of tokens; 0 is likelihood"
    )


class EntropyActorCriticSettings(Section):
    """Of `entropy-actor-critic`."""

    temperature: Weight = Field(0.04, description="τ: worth of a nat of entropy; the authors' value for translation")


class DaggerSettings(Section):
    """Of `dagger`."""

    iterations: Positive = Field(20, description="N: equal shares of the updates, each with its own β")
    decay: Share = Field(
        0.0, description="p of β_i = p^(i-1), how often the expert chooses the token; 0: in the first iteration only"
    )


class DirectLossSettings(Section):
    """Of `direct-loss`."""

    direction: Literal["better", "worse", "both"] = Field(
        "both", description="towards better answers, away from worse ones (the paper's two), or their mean"
    )
    epsilon: Factor = Field(1.0, description="ε: nats that a point of the score is worth in the augmented decoding")
    width: Samples = Field(4, description="of the beam, whose best are candidates; exact search in the paper")
    samples: Samples = Field(4, description="sampled candidates for each example; none in the paper")


class BeamSearchOptimizationSettings(Section):
    """Of `beam-search-optimization`."""

    initial_width: Several = Field(2, description="K of the training beam at first; 2 in the paper")
    width: Several = Field(6, description="K at last, one more than the beam that is searched with; 6 in the paper")


class MethodSettings(Section):
    """The method and its constants, named as in the paper's Algorithm 1."""

    name: Annotated[str, AfterValidator(_known)] = "actor-critic"
    likelihood_weight: Weight = Field(0.0, description="λ_LL: weight of the likelihood term; the paper uses 0.1")
    sharpening: Factor = Field(
        1.0,
        description="κ: the actor's logits are multiplied by it when its pre-training is over, for all methods but "
        "likelihood; greedy predictions stay as they are, samples come nearer to them",
    )
    reward_dropout: Literal["none", "held"] = Field(
        "none",
        description="what actor.dropout does where rewards are learnt from: none, nothing is dropped in drawing a "
        "prediction or in scoring it (the likelihood term keeps its own); held, the same units in both",
    )
    samples: Samples = Field(1, description="M: samples for each example, averaged")
    target_samples: Samples = Field(
        1, description="K: samples for each of the critic's targets; more than 1 continue every prefix K - 1 times"
    )
    temporal_difference: bool = Field(True, description="false for Monte-Carlo targets")
    variance_penalty: Weight = Field(1e-3, description="λ_C")
    gamma_theta: Rate = Field(
        1e-3, description="γ_θ of the delayed actor; REINFORCE always samples from the present actor"
    )
    gamma_phi: Rate = Field(1e-3, description="γ_φ of the target critic")
    correction: Annotated[float | Literal["auto"], BeforeValidator(_share_or_auto)] = Field(
        0.0,
        description="η, of actor-critic: how much of the critic's bias the samples' own returns take back. 0, the "
        "paper: none; 1: all, for more noise; auto: what leaves the least error, found while training. Other than "
        "0, the actor itself draws, whatever gamma_theta is",
    )
    baseline_learning_rate: Rate = Field(1e-2, description="of the linear baseline")
    reinforce_multisample: ReinforceMultisampleSettings = ReinforceMultisampleSettings()
    scheduled_sampling: ScheduledSamplingSettings = ScheduledSamplingSettings()
    mixer: MixerSettings = MixerSettings()
    minimum_risk: MinimumRiskSettings = MinimumRiskSettings()
    raml: RamlSettings = RamlSettings()
    entropy_actor_critic: EntropyActorCriticSettings = EntropyActorCriticSettings()
    dagger: DaggerSettings = DaggerSettings()
    direct_loss: DirectLossSettings = DirectLossSettings()
    beam_search_optimization: BeamSearchOptimizationSettings = BeamSearchOptimizationSettings()

    @model_validator(mode="after")
    def _correction_has_a_place(self) -> Self:
        if self.correction != 0 and not self.traits.takes_correction:
            able = " and ".join(name for name, traits in METHODS.items() if traits.takes_correction)
            raise ValueError(f"method.correction: only {able} have one; leave it 0 for {self.name}")
        return self

    @property
    def traits(self) -> Traits:
        """What the method needs beside the actor."""
        return METHODS[self.name]

    @property
    def needs_critic(self) -> bool:
        """Whether the method trains a critic."""
        return self.traits.needs_critic

    @property
    def follower_speed(self) -> float:
        """γ_θ as the method uses it; 1 means that samples come from the actor itself."""
        return self.gamma_theta if self.traits.delays_actor and self.correction == 0 else 1.0

    @property
    def num_further(self) -> int:
        """K − 1, the further samples of each of the critic's targets; 0 without a critic."""
        return self.target_samples - 1 if self.needs_critic else 0

    @property
    def temperature(self) -> float:
        """τ as the method uses it: what its returns count an entropy of one nat for."""
        return self.entropy_actor_critic.temperature if self.name == "entropy-actor-critic" else 0.0

    @property
    def label(self) -> str:
        """The name in tables: `actor-critic+likelihood` where the likelihood is mixed in."""
        mixed = self.likelihood_weight > 0 and self.name != "likelihood"
        return self.name + (MIXED if mixed else "")
