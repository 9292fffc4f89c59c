"""The settings of methods: what all of them share, and a section for each registered method that has its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, create_model, model_validator

from seqcritic.contracts.method_registry import METHODS, registered_methods
from seqcritic.errors import nearest
from seqcritic.settings.base import Factor, Rate, Samples, Section, Weight

if TYPE_CHECKING:
    from seqcritic.contracts.method import Method, Traits
    from seqcritic.contracts.networks import NetworkSpec

MIXED = "+likelihood"
PAPER_LIKELIHOOD_WEIGHT = 0.1
# What people search for and is no method here under another name: an alias would promise what is not done.
NOT_HERE = {
    "spg": " (the softmax policy gradient of Ding and Soricut 2017 is not built; the nearest is 'raml', which draws by "
    "the score alone)"
}


def mixed_labels() -> tuple[str, ...]:
    """Return how tables call the methods with the likelihood mixed in."""
    return tuple(name + MIXED for name in registered_methods() if name != "likelihood")  # with itself it is no mixture


def method_labels() -> tuple[str, ...]:
    """Return how tables call the methods, alone and with the likelihood mixed in."""
    return (*registered_methods(), *mixed_labels())


def typical_costs() -> dict[str, float]:
    """Return typical costs of an update by label, and of the critic's pre-training, in likelihood updates."""
    traits = {name: method.traits for name, method in registered_methods().items()}
    return (
        # The method's own tell theirs; an update of the critic's pre-training belongs to none of them.
        {"critic": 2.1}
        | {name: each.cost for name, each in traits.items()}
        | {label: traits[label.removesuffix(MIXED)].mixed_cost for label in mixed_labels()}
    )


def method_aliases() -> dict[str, tuple[str, dict[str, object]]]:
    """Return the other names of methods, each with the method's own and what it means in the method's section."""
    known = registered_methods()
    return {
        alias: (name, dict(meaning))
        for name, method in known.items()
        for alias, meaning in vars(method).get("aliases", {}).items()  # what is inherited is another method's
        if alias not in known
    }


def nearest_method(label: str, known: Sequence[str]) -> str:
    """Return the end of a message that names the known label nearest to a wrong one, by what is called so elsewhere."""
    name, mixed, _ = label.lower().partition(MIXED)
    aliases = method_aliases()
    # Before the nearest by letters, which would lead from an alias to some other method.
    if name in aliases and aliases[name][0] + mixed in known:
        return f" (did you mean '{aliases[name][0] + mixed}'?)"
    return NOT_HERE.get(name) or nearest(label.lower(), known)


def _known(name: str) -> str:
    known = registered_methods()
    if name not in known:
        mixture = name.removesuffix(MIXED) in known or name.removesuffix(MIXED) in method_aliases()
        if mixture:
            hint = "; the mixture is method.likelihood_weight=0.1"
        else:
            # Papers write them in capitals.
            hint = NOT_HERE.get(name.lower()) or nearest(name.lower(), (*known, *method_aliases()))
        raise ValueError(f"method.name: unknown method '{name}'{hint}; known: {', '.join(known)}")
    return name


def _fraction_or_auto(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)  # True is an int
    if value != "auto" and not (is_number and 0 <= value <= 1):
        raise ValueError(f"method.correction: a number from 0 to 1, or auto, not {value!r}")
    return value


class MethodSettings(Section):
    """The method and its constants, named as in the paper's Algorithm 1.

    These are the common ones. `method_settings` makes the whole section, with those of the single methods in it.
    """

    name: Annotated[str, AfterValidator(_known)] = "actor-critic"
    likelihood_weight: Weight = Field(0.0, description="λ_LL: weight of the likelihood term; the paper uses 0.1")
    label_smoothing: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = Field(
        0.0,
        description="ε: wherever references are learnt by likelihood (phases.actor, likelihood, its term in mixtures), "
        "so much of each label is spread evenly over all tokens; none in the paper",
    )
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
    correction: Annotated[float | Literal["auto"], BeforeValidator(_fraction_or_auto)] = Field(
        0.0,
        description="η, of actor-critic: how much of the critic's bias the samples' own returns take back. 0, the "
        "paper: none; 1: all, for more noise; auto: what leaves the least error, found while training. Other than "
        "0, the actor itself draws, whatever gamma_theta is",
    )
    baseline_learning_rate: Rate = Field(1e-2, description="of the linear baseline")
    kl_weight: Weight = Field(
        0.0,
        description="λ_KL, of all methods but likelihood: weight of the divergence of the actor from what it was when "
        "the phase began; none in the paper",
    )

    @model_validator(mode="before")
    @classmethod
    def _by_its_own_name(cls, tree: Any) -> Any:
        """Put a method's own name in the place of an alias, and what the alias means in the method's section."""
        alias = tree.get("name") if isinstance(tree, dict) else None
        found = method_aliases().get(alias) if isinstance(alias, str) else None
        if found is None:
            return tree
        name, meaning = found
        key = section_key(name)
        given = tree.get(key, {})
        # A section that is no dictionary is refused by its own validation, under its own path.
        if not meaning or not isinstance(given, dict):
            return tree | {"name": name}
        if any(given.get(setting, value) != value for setting, value in meaning.items()):
            told = " and ".join(f"method.{key}.{setting}={value}" for setting, value in meaning.items())
            raise ValueError(f"method.name: {alias} is {name} with {told}; for others, write {name}")
        return tree | {"name": name, key: given | meaning}

    @model_validator(mode="after")
    def _correction_has_a_place(self) -> Self:
        if self.correction != 0 and not self.traits.takes_correction:
            able = " and ".join(name for name, method in registered_methods().items() if method.traits.takes_correction)
            raise ValueError(f"method.correction: only {able} have one; leave it 0 for {self.name}")
        return self

    @property
    def kind(self) -> type[Method]:
        """The method's class."""
        return METHODS.find(self.name)

    @property
    def traits(self) -> Traits:
        """What the rest of the program must know of the method."""
        return self.kind.traits

    @property
    def own(self) -> Section:
        """The method's own section, an empty one where it has none."""
        section: Section = Section() if self.kind.Settings is None else getattr(self, section_key(self.name))
        return section

    @property
    def needs_critic(self) -> bool:
        """Whether the method trains a critic."""
        return any(spec.name == "critic" for spec in self.kind.needs)

    @property
    def networks(self) -> tuple[NetworkSpec, ...]:
        """The networks beside the actor that the method needs with these settings."""
        from seqcritic.contracts.networks import ANCHOR  # here, since it loads torch, as the methods have

        # A copy that follows at rate 1 is the network itself, and would cost memory and an update.
        own = tuple(spec for spec in self.kind.needs if not (spec.spared_at_one and self.rate_of(spec) == 1))
        anchored = self.kl_weight > 0 and self.name != "likelihood" and ANCHOR not in own
        return (*own, ANCHOR) if anchored else own

    def rate_of(self, spec: NetworkSpec) -> float:
        """Return γ, at which a copy follows the network it is a copy of."""
        # A text names the setting that has it, which may be a property, such as effective_gamma_theta.
        rate: float = getattr(self, spec.rate) if isinstance(spec.rate, str) else spec.rate
        return rate

    @property
    def effective_gamma_theta(self) -> float:
        """γ_θ as the method uses it; 1 means that samples come from the actor itself."""
        # Returns correct the critic for the policy that drew them, which must be the one that is trained.
        return self.gamma_theta if self.correction == 0 else 1.0

    @property
    def num_further(self) -> int:
        """K − 1, the further samples of each of the critic's targets; 0 without a critic."""
        return self.target_samples - 1 if self.needs_critic else 0

    @property
    def temperature(self) -> float:
        """τ, the weight of the policy's entropy (in nats) in the method's returns."""
        return self.kind.temperature(self.own)

    @property
    def label(self) -> str:
        """The name in tables: `actor-critic+likelihood` where the likelihood is mixed in."""
        mixed = self.likelihood_weight > 0 and self.name != "likelihood"
        return self.name + (MIXED if mixed else "")


def states_refused(critic: str, method: str) -> str:
    """Return why a critic of states does not go with a method that follows values of tokens."""
    return (
        f"{critic} values states alone, and {method} follows values of every token; set critic.kind=gru, or "
        "method.name=ppo or reinforce-critic"
    )


def section_key(name: str) -> str:
    """Return how a method's section of the settings is called: `scheduled_sampling` of `scheduled-sampling`."""
    return name.replace("-", "_")


def method_section() -> type[MethodSettings]:
    """Return the class of the whole section, as the methods that are registered now make it."""
    return _whole_section(
        tuple((name, method.Settings) for name, method in registered_methods().items() if method.Settings is not None)
    )


# A class takes milliseconds to make, and sections of two classes are unequal, whatever their values.
@lru_cache
def _whole_section(sections: tuple[tuple[str, type[Section]], ...]) -> type[MethodSettings]:
    fields: dict[str, Any] = {section_key(name): (section, section()) for name, section in sections}
    for name, _ in sections:
        if section_key(name) in MethodSettings.model_fields:
            raise ValueError(f"method '{name}': its section would hide the setting method.{section_key(name)}")
    return create_model("MethodSettings", __base__=MethodSettings, __doc__=MethodSettings.__doc__, **fields)


def method_settings(values: Any = None) -> MethodSettings:
    """Validate a nested dictionary as the whole section; settings that are validated stay as they are."""
    if isinstance(values, MethodSettings):
        return values
    return method_section().model_validate({} if values is None else values)


MethodField = Annotated[SerializeAsAny[MethodSettings], BeforeValidator(method_settings)]
