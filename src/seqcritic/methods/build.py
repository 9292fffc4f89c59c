"""What a phase runs: its method, and the networks that one needs."""

from __future__ import annotations

import torch

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.method import Method
from seqcritic.contracts.networks import Networks, copy_network
from seqcritic.contracts.score import Score
from seqcritic.errors import UserError
from seqcritic.methods.likelihood import Likelihood
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.models.baseline import LinearBaseline
from seqcritic.models.build import build_actor, build_critic
from seqcritic.settings.methods import MethodSettings, states_refused
from seqcritic.settings.tree import Settings


def build_method(settings: Settings, phase: str, score: Score) -> Method:
    """Return what one phase runs: likelihood for the actor, policy evaluation for the critic, then the method."""
    fixed: dict[str, type[Method]] = {"actor": Likelihood, "critic": CriticTraining}
    # Of the phases, actor, critic and train, only the last runs what the settings name.
    chosen = fixed.get(phase, settings.method.kind)
    return chosen(settings.method, score, settings.score.shaping)


def build_networks(
    settings: Settings, num_source_tokens: int, num_target_tokens: int, generator: torch.Generator
) -> Networks:
    """Return the actor and the other networks of the settings' method, with fresh weights; copies begin equal."""
    actor = build_actor(settings, num_source_tokens, num_target_tokens, generator)
    critic = build_critic(settings, actor, generator) if settings.method.needs_critic else None
    return assemble_networks(settings.method, actor, critic)


def assemble_networks(method: MethodSettings, actor: Actor, critic: Critic | None) -> Networks:
    """Return an actor and a critic with the copies and the baseline that a method needs beside them."""
    if critic is not None and not critic.values_tokens and method.traits.follows_values:
        raise UserError(states_refused(f"critic: {type(critic).__name__}", method.name))
    networks = Networks(actor)
    for spec in method.networks:
        if spec.copy_of is not None:
            # No optimiser and no gradient moves it.
            networks[spec.name] = copy_network(networks[spec.copy_of]).requires_grad_(False)
        elif spec.name == "critic":
            networks.critic = critic
        else:
            networks.baseline = LinearBaseline(actor.state_size)
    return networks


def count_numbers(networks: Networks) -> int:
    """Return how many numbers, at least, training keeps in memory for some networks.

    A network that is trained has its weights, their gradient and Adam's two moments; of the actor the best is kept too.
    """
    copies = {"actor": 5, "critic": 4}
    return sum(
        copies.get(name, 1) * sum(weight.numel() for weight in network.parameters())
        for name, network in networks.named().items()
    )
