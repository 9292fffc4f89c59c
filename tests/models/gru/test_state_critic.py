"""Critics of states: what they may read, that they bias nothing, that they learn, and what refuses them."""

from __future__ import annotations

import pytest
import torch

from method_worlds import SCORE
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.errors import UserError
from seqcritic.models.gru.state_critic import GruStateCriticSettings, RecurrentStateCritic
from seqcritic.settings.io import settings_from
from seqcritic.settings.methods import method_section
from seqcritic.testing.unbiased import assert_unbiased, method_estimator
from seqcritic.testing.worlds import NUM_TOKENS, make_world

SIZES = {"embedding": 7, "hidden": 8, "attention": 5, "initial_range": None}
PREDICTIONS = torch.tensor([[1, 2, 1, 0], [2, 2, 1, 1]])
MASK = torch.tensor([[True] * 4, [True, True, True, False]])


def make_critic(num_tokens: int, state_size: int, **changes: object) -> RecurrentStateCritic:
    settings = GruStateCriticSettings.model_validate(SIZES | changes)
    return RecurrentStateCritic(settings, num_tokens, state_size, torch.Generator().manual_seed(5)).double()


@pytest.mark.parametrize("reads_reference", [True, False])
@pytest.mark.parametrize(("name", "knobs"), [("reinforce-critic", {}), ("ppo", {"gae_lambda": 1.0, "steps": 1})])
def test_as_a_baseline_it_biases_nothing(name: str, knobs: dict[str, object], reads_reference: bool):
    world = make_world()
    networks = Networks(world.actor)
    critics = [make_critic(NUM_TOKENS, world.actor.state_size, reads_reference=reads_reference) for _ in range(2)]
    networks.critic, networks.target_critic = critics
    settings = method_section()(name=name, **({name: knobs} if knobs else {}))
    assert_unbiased(method_estimator(registered_methods()[name](settings, SCORE, True), networks, world), world)


@pytest.mark.parametrize("reads_reference", [True, False])
def test_values_are_of_prefixes_and_of_the_reference_where_it_is_read(reads_reference: bool):
    critic = make_critic(6, 3, reads_reference=reads_reference)
    views = torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    everywhere = torch.ones(2, 3, dtype=torch.bool)
    memory = critic.encode(torch.tensor([[1, 2, 0], [3, 4, 0]]), everywhere)
    values = critic.values(memory, PREDICTIONS, views)
    assert values.shape == (2, 4, 6)
    assert torch.equal(values, values[:, :, :1].expand_as(values)), "all tokens share the state's"
    for step in range(4):
        changed = PREDICTIONS.clone()
        changed[:, step] = 5
        other = critic.values(memory, changed, views)
        assert torch.equal(other[:, : step + 1], values[:, : step + 1]), "a token is not known before it is drawn"
        assert step == 3 or not torch.allclose(other[:, step + 1], values[:, step + 1])
    other = critic.values(critic.encode(torch.tensor([[5, 2, 0], [3, 1, 0]]), everywhere), PREDICTIONS, views)
    assert torch.equal(other, values) == (not reads_reference)


@pytest.mark.parametrize("reads_reference", [True, False])
def test_what_the_reference_alone_tells_is_learnt_where_it_is_read(reads_reference: bool):
    """A state is worth 1 where the reference begins so: of the prefix alone nothing can be told."""
    every = torch.cartesian_prod(torch.arange(1, 5), torch.arange(1, 5))  # the reference's token, the prediction's
    padded = torch.nn.functional.pad(every[:, :1], (0, 1)), torch.ones(16, 2, dtype=torch.bool)
    predictions = torch.nn.functional.pad(every[:, 1:], (0, 1))
    worth = (every[:, 0] == 1).double()
    critic = make_critic(5, 1, reads_reference=reads_reference, reads_actor_states=False)
    optimiser = torch.optim.Adam(critic.parameters(), lr=0.03)
    mask = torch.ones(16, 2, dtype=torch.bool)
    for _ in range(60):
        values = critic.masked_state_values(critic.encode(*padded), predictions, torch.zeros(16, 2, 1), mask).padded()
        loss = (values[:, 1, 0] - worth).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    variance = worth.var(unbiased=False)
    assert bool(loss < 0.1 * variance) == reads_reference
    assert reads_reference or bool(loss > 0.9 * variance)


@pytest.mark.parametrize("change", ["residual_on=lookahead", "columns=5", "from_actor=true", "tied=true"])
def test_what_is_of_values_of_tokens_is_refused(change: str):
    key, _, value = change.partition("=")
    with pytest.raises(UserError, match=r"critic.kind: gru-state"):
        settings_from({"critic": {"kind": "gru-state", key: value}, "method": {"name": "ppo"}})
    with pytest.raises(UserError, match=r"critic.kind: gru-state.*actor-critic"):
        settings_from({"critic": {"kind": "gru-state"}, "method": {"name": "actor-critic"}})
