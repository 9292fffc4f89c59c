"""MIXER, scheduled sampling and DAgger: the expected gradient over all draws against the equations, in float64.

The methods run on the world of three tokens, once for every outcome of every draw they make. The equations are written
out sequence by sequence, with the gradient by autograd.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from method_worlds import SCORE, make_settings
from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.decoding import sampling
from seqcritic.methods import dagger, scheduled_sampling
from seqcritic.methods.build import build_networks
from seqcritic.testing.branches import Branches, expected_gradients, outcomes
from seqcritic.testing.worlds import (
    NUM_STEPS,
    NUM_TOKENS,
    all_sequences,
    gradients,
    held_masks,
    largest_difference,
    make_actor,
    make_batch,
    make_world,
)

REFERENCE = (1, 2, 0)


def log_probabilities(actor: Actor, tokens: tuple[int, ...]) -> Tensor:
    """Return log p(· | prefix) at every place of a sequence, [T, V]."""
    batch = make_batch()
    memory = actor.encode(batch.sources, batch.source_mask, held_masks(actor))
    logits, _ = actor.score(memory, torch.tensor([tokens]))
    return torch.log_softmax(logits[0], 1)


def likelihood(actor: Actor) -> Tensor:
    """Return −log p(Y)."""
    steps = log_probabilities(actor, REFERENCE)
    return -sum((steps[place, token] for place, token in enumerate(REFERENCE)), torch.zeros(()))


@pytest.fixture(autouse=True)
def short_samples(monkeypatch):
    """Cut samples after three tokens, as the enumerated world does."""
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=NUM_STEPS - 2))


def enumerate_method(
    name: str, networks: Networks, branches: Branches, progress: float, shaping: bool = True, **changes: object
) -> list[Tensor]:
    """Return the actor's expected gradient under a method."""
    method = registered_methods()[name](make_settings(name, **changes).method, SCORE, shaping)
    return expected_gradients(
        branches, lambda: method(networks, make_batch(), torch.Generator(), progress), networks.actor
    )


@pytest.mark.parametrize(
    ("num_given", "shaping", "changes"),
    [
        *itertools.product(range(NUM_STEPS), (True, False), [{}]),
        (1, True, {"samples": 2}),
        (1, True, {"likelihood_weight": 0.25}),
    ],
)
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_mixer_is_the_likelihood_of_the_head_and_the_expected_return_of_the_tail(
    num_given, shaping, changes, dropout, monkeypatch
):
    """loss = −Σ_{t≤s} log p(y_t) − Σ_Ŷ p(Ŷ_s+1.. | Y_1..s) R(Ŷ), over all Ŷ that begin with Y_1..s."""
    settings = make_settings("mixer")
    networks = build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(3))
    networks.actor = make_actor(dropout=dropout)
    networks.baseline = type(networks.baseline)(5).double()
    torch.nn.init.normal_(networks.baseline.linear.weight, std=3.0, generator=torch.Generator().manual_seed(1))
    branches = Branches()
    monkeypatch.setattr(sampling, "choose", branches.choose)
    progress = (NUM_STEPS - 1 - num_given + 0.5) / NUM_STEPS  # Δ = 1: stage k of 3 gives 3 − k tokens
    found = enumerate_method("mixer", networks, branches, progress, shaping, mixer={"step": 1}, **changes)

    world = make_world(networks.actor, shaping, held_masks(networks.actor))
    begins = [row for row, tokens in enumerate(world.sequences) if tokens[:num_given] == REFERENCE[:num_given]]
    head = torch.log_softmax(world.logits[begins[0]], 1)[range(num_given), REFERENCE[:num_given]].sum()
    tails = world.sequence_probabilities[begins] / head.exp()
    assert float(tails.detach().sum()) == pytest.approx(1, abs=1e-12)
    loss = -head - (tails * world.rewards[begins].sum(1)).sum()
    loss = loss + changes.get("likelihood_weight", 0.0) * likelihood(networks.actor)
    assert largest_difference(found, gradients(loss, networks.actor)) < 1e-10


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("progress", "weight"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.5, 0.25)])
def test_scheduled_sampling_is_the_expectation_over_all_mixed_inputs(progress, weight, dropout, monkeypatch):
    """loss = −Σ_Z P(Z) Σ_t log p(y_t | Z_1..t-1), P(z_t) = ε [z_t = y_t] + (1 − ε) p(z_t | Z_1..t-1), P held fixed."""
    networks, branches = Networks(make_actor(dropout=dropout)), Branches()
    share = 1 - 0.8 * progress
    monkeypatch.setattr(scheduled_sampling, "choose", branches.choose)
    monkeypatch.setattr(scheduled_sampling, "draw_uniform", branches.coins(share))
    own = {"decay": "linear", "final": 0.2}
    found = enumerate_method(
        "scheduled-sampling", networks, branches, progress, scheduled_sampling=own, likelihood_weight=weight
    )

    loss = weight * likelihood(networks.actor)
    for inputs in itertools.product(range(NUM_TOKENS), repeat=len(REFERENCE) - 1):
        steps = log_probabilities(networks.actor, (*inputs, REFERENCE[-1]))
        probability = 1.0
        for place, token in enumerate(inputs):
            drawn = float(steps[place, token].detach().exp())
            probability *= share * (token == REFERENCE[place]) + (1 - share) * drawn
        loss = loss - probability * sum(steps[place, token] for place, token in enumerate(REFERENCE))
    assert largest_difference(found, gradients(loss, networks.actor)) < 1e-10


@pytest.mark.parametrize("reads_actor_states", [True, False])
@pytest.mark.parametrize(("iteration", "weight"), [(0, 0.0), (1, 0.0), (2, 0.25)])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_dagger_is_the_expectation_over_all_mixed_roll_ins(iteration, weight, dropout, reads_actor_states, monkeypatch):
    """loss = −Σ_Ŷ P(Ŷ) Σ_t log p(e_t | Ŷ_1..t-1), P(ŷ_t) = β [ŷ_t = e_t] + (1 − β) p(ŷ_t | Ŷ_1..t-1), P held fixed."""
    share = 0.6**iteration
    own = {"iterations": 3, "decay": 0.6}
    settings = make_settings("dagger", dagger=own)
    settings = settings.model_copy(
        update={
            "critic": settings.critic.model_copy(update={"reads_actor_states": reads_actor_states}),
            "actor": settings.actor.model_copy(update={"dropout": dropout}),
        }
    )
    networks = build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(3))
    networks.actor.limits = Actor.limits
    weights = torch.Generator().manual_seed(30)
    for network in (networks.actor, networks.critic):
        for parameter in network.double().parameters():
            torch.nn.init.normal_(parameter, generator=weights)  # large, so that the advice depends on the prefix
    networks.target_critic.double()
    branches = Branches()
    monkeypatch.setattr(dagger, "choose", branches.choose)
    monkeypatch.setattr(dagger, "draw_uniform", branches.coins(share))
    progress = (iteration + 0.5) / 3
    found = enumerate_method("dagger", networks, branches, progress, dagger=own, likelihood_weight=weight)

    actor, critic, batch = networks.actor, networks.critic, make_batch()
    memory = actor.encode(batch.sources, batch.source_mask, held_masks(actor))
    critic_memory = critic.encode(batch.references, batch.reference_mask)
    loss, total, advice = weight * likelihood(actor), 0.0, set()
    for tokens in all_sequences():
        row = torch.tensor([tokens])
        logits, states = actor.score(memory, row)
        experts = critic.values(critic_memory, row, states.detach())[0].argmax(1).tolist()
        steps = torch.log_softmax(logits[0], 1)
        probability = 1.0
        for place, (token, expert) in enumerate(zip(tokens, experts, strict=True)):
            probability *= share * (token == expert) + (1 - share) * float(steps[place, token].detach().exp())
        loss = loss - probability * sum(steps[place, expert] for place, expert in enumerate(experts))
        total, advice = total + probability, advice | set(experts)
    assert total == pytest.approx(1, abs=1e-12)
    assert len(advice) > 1, "an expert that always says the same would not tell its places apart"
    assert largest_difference(found, gradients(loss, actor)) < 1e-10


def test_the_branches_are_all_outcomes_of_draws_that_depend_on_one_another():
    branches, seen = Branches(), {}

    def run() -> int:
        first = branches.take([0.5, 0.5])
        return 10 * first + (branches.take([0.2, 0.3, 0.5]) if first else 0)

    for probability, outcome in outcomes(branches, run):
        seen[outcome] = probability
    assert seen == pytest.approx({0: 0.5, 10: 0.1, 11: 0.15, 12: 0.25})
