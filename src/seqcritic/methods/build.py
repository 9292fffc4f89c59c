"""What a phase runs: its method, and the networks that one needs."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch

from seqcritic.config import Settings
from seqcritic.contracts.method import Method
from seqcritic.contracts.networks import Networks
from seqcritic.methods.likelihood import Likelihood
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.models.baseline import LinearBaseline
from seqcritic.models.build import build_actor, build_critic
from seqcritic.scores.score import Score

Network = TypeVar("Network", bound=torch.nn.Module)


def build_method(settings: Settings, phase: str, score: Score) -> Method:
    """Return what one phase runs: likelihood for the actor, policy evaluation for the critic, then the method."""
    fixed: dict[str, type[Method]] = {"actor": Likelihood, "critic": CriticTraining}
    chosen = fixed.get(phase, settings.method.kind)
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
