"""The methods by name, and the networks each of them needs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import torch

from seqcritic.config import Settings
from seqcritic.contracts.score import Score
from seqcritic.method_settings import METHODS, MethodSettings
from seqcritic.methods.actor_critic import ActorCritic
from seqcritic.methods.beam_search_optimization import BeamSearchOptimization
from seqcritic.methods.dagger import Dagger
from seqcritic.methods.direct_loss import DirectLoss
from seqcritic.methods.entropy_actor_critic import EntropyActorCritic
from seqcritic.methods.likelihood import Likelihood
from seqcritic.methods.method import Method
from seqcritic.methods.minimum_risk import MinimumRisk
from seqcritic.methods.mixer import Mixer
from seqcritic.methods.networks import Networks
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.methods.raml import Raml
from seqcritic.methods.reinforce import Reinforce, ReinforceCritic
from seqcritic.methods.reinforce_multisample import ReinforceMultisample
from seqcritic.methods.scheduled_sampling import ScheduledSampling
from seqcritic.methods.self_critical import SelfCritical
from seqcritic.models.baseline import LinearBaseline
from seqcritic.models.build import build_actor, build_critic

Network = TypeVar("Network", bound=torch.nn.Module)

Builder = Callable[[MethodSettings, Score, bool], Method]
REWARD_METHODS: dict[str, Builder] = {
    "actor-critic": ActorCritic,
    "entropy-actor-critic": EntropyActorCritic,
    "dagger": Dagger,
    "direct-loss": DirectLoss,
    "beam-search-optimization": BeamSearchOptimization,
    "reinforce": Reinforce,
    "reinforce-critic": ReinforceCritic,
    "reinforce-multisample": ReinforceMultisample,
    "self-critical": SelfCritical,
    "scheduled-sampling": ScheduledSampling,
    "mixer": Mixer,
    "minimum-risk": MinimumRisk,
    "raml": Raml,
}
assert set(METHODS) == {"likelihood", *REWARD_METHODS}


def build_method(settings: Settings, phase: str, score: Score) -> Method:
    """Return what one phase runs: likelihood for the actor, policy evaluation for the critic, then the method."""
    if phase == "actor" or settings.method.name == "likelihood":
        return Likelihood()
    chosen: Builder = CriticTraining if phase == "critic" else REWARD_METHODS[settings.method.name]
    return chosen(settings.method, score, settings.score.shaping)


def build_networks(
    settings: Settings, num_source_tokens: int, num_target_tokens: int, generator: torch.Generator
) -> Networks:
    """Return all networks of the settings' method with fresh weights; followers start as copies."""
    networks = Networks(build_actor(settings, num_source_tokens, num_target_tokens, generator))
    if settings.method.follower_speed < 1:
        networks.delayed_actor = _follower(networks.actor)
    if settings.method.needs_critic:
        networks.critic = build_critic(settings, networks.actor, generator)
        networks.target_critic = _follower(networks.critic)
    if settings.method.traits.needs_baseline:
        networks.baseline = LinearBaseline(networks.actor.state_size)
    return networks


def count_numbers(settings: Settings, num_source_tokens: int, num_target_tokens: int) -> int:
    """Return how many numbers a training holds at least for its networks, without making any of them.

    A network that is trained has its weights, their gradient and Adam's two moments; of the actor the best is kept too.
    """
    with torch.device("meta"):
        networks = build_networks(settings, num_source_tokens, num_target_tokens, torch.Generator())
    copies = {"actor": 5, "critic": 4}
    return sum(
        copies.get(name, 1) * sum(weight.numel() for weight in network.parameters())
        for name, network in networks.named().items()
    )


def _follower(leader: Network) -> Network:
    """Return a copy of a network that no optimiser and no gradient moves."""
    return copy.deepcopy(leader).requires_grad_(False)
