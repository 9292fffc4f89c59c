"""DAgger with the critic as the expert: whom the actor imitates, and who chooses the tokens of a rollout."""

from __future__ import annotations

import pytest
import torch

from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import Sample, sample
from seqcritic.draws import choose, draw_numbers, draw_uniform
from seqcritic.methods import rollout
from seqcritic.methods.dagger import Dagger, DaggerSettings, expert_probability, sample_mixture
from seqcritic.testing.worlds import World, gradients, largest_difference, make_actor, make_world
from seqcritic.testing.worlds import make_batch as make_small_batch
from test_estimators import Estimator
from test_gradients import SCORE, make_batch, make_networks, make_settings

MAXIMUM_LENGTHS = torch.tensor([7, 3, 1, 5, 9])


def test_the_target_is_the_token_of_the_highest_exact_value(monkeypatch):
    world = make_world(make_actor())
    networks = Estimator("dagger", table=World.exact_values).networks(world)
    method = Dagger(make_settings("dagger", variance_penalty=0.0).method, SCORE, True)
    exact = world.exact_values()
    for row, sequence in enumerate(world.sequences):
        monkeypatch.setattr(rollout, "sample", lambda *rest, row=row: world.sample_of((row,)))
        outcome = method(networks, make_small_batch(), torch.Generator(), 0.9)
        again = make_world(networks.actor)
        log_probabilities = torch.log_softmax(again.logits[row], 1)
        loss = -sum(log_probabilities[step, exact[row, step].argmax()] for step in range(len(sequence)))
        assert float(outcome.measurements["actor_loss"]) == pytest.approx(float(loss.detach()), abs=1e-12)
        assert largest_difference(gradients(outcome.loss, networks.actor), gradients(loss, networks.actor)) < 1e-12


def test_the_expert_chooses_in_the_first_iteration_or_less_and_less():
    first_only = DaggerSettings()
    assert [expert_probability(first_only, progress) for progress in (0.0, 0.049, 0.05, 0.99)] == [1, 1, 0, 0]
    halving = DaggerSettings(iterations=4, decay=0.5)
    assert [expert_probability(halving, progress) for progress in (0.0, 0.25, 0.5, 0.75)] == [1, 0.5, 0.25, 0.125]


def draw_mixture(networks: Networks, probability: float) -> Sample:
    batch = make_batch()
    memory = networks.actor.encode(batch.sources, batch.source_mask)
    critic_memory = networks.critic.encode(batch.references, batch.reference_mask)
    generator = torch.Generator().manual_seed(0)
    return sample_mixture(
        networks.actor, memory, MAXIMUM_LENGTHS, generator, networks.critic, critic_memory, batch, probability
    )


@pytest.mark.parametrize("reads_actor_states", [True, False])
@pytest.mark.parametrize("probability", [0.0, 0.4, 1.0])
def test_each_token_is_the_experts_or_the_actors_as_the_coin_says(probability, reads_actor_states):
    settings = make_settings("dagger")
    settings = settings.model_copy(
        update={"critic": settings.critic.model_copy(update={"reads_actor_states": reads_actor_states})}
    )
    networks = make_networks(settings)
    drawn = draw_mixture(networks, probability)
    batch, actor, critic = make_batch(), networks.actor, networks.critic
    logits, states = actor.score(actor.encode(batch.sources, batch.source_mask), drawn.tokens)
    values = critic.values(critic.encode(batch.references, batch.reference_mask), drawn.tokens, states)
    mask, probabilities = drawn.mask, drawn.probabilities.padded()
    assert torch.allclose(probabilities[mask], torch.softmax(logits, 2)[mask], atol=1e-12)
    assert torch.allclose(drawn.states[mask], states[mask], atol=1e-12)
    entropies = -(torch.softmax(logits, 2) * torch.log_softmax(logits, 2)).sum(2)
    assert torch.allclose(drawn.entropies, torch.where(mask, entropies, 0.0), atol=1e-12)
    generator = torch.Generator().manual_seed(0)
    numbers = draw_numbers(generator, int(MAXIMUM_LENGTHS.max()), len(MAXIMUM_LENGTHS))
    coins = draw_uniform(generator, int(MAXIMUM_LENGTHS.max()), len(MAXIMUM_LENGTHS)) < probability
    for step in range(drawn.tokens.shape[1]):
        of_actor = choose(probabilities[:, step], numbers[step])
        expected = torch.where(coins[step], values[:, step].argmax(1), of_actor)
        assert torch.equal(drawn.tokens[:, step], torch.where(drawn.mask[:, step], expected, END))
    lengths = drawn.mask.sum(1)
    last = drawn.tokens[torch.arange(len(MAXIMUM_LENGTHS)), lengths - 1]
    assert bool(((last == END) | (lengths == MAXIMUM_LENGTHS)).all())
    assert bool((lengths <= MAXIMUM_LENGTHS).all())
    assert not bool(((drawn.tokens == END) & drawn.mask)[:, :-1][drawn.mask[:, 1:]].any())


def test_without_the_expert_rollouts_are_plain_samples():
    networks = make_networks(make_settings("dagger"))
    memory = networks.actor.encode(make_batch().sources, make_batch().source_mask)
    plain = sample(networks.actor, memory, MAXIMUM_LENGTHS, torch.Generator().manual_seed(0))
    mixed = draw_mixture(networks, 0.0)
    assert torch.equal(plain.tokens, mixed.tokens)
    assert torch.equal(plain.mask, mixed.mask)
    assert not torch.equal(plain.tokens, draw_mixture(networks, 1.0).tokens)


def test_the_progress_decides_who_rolls_in():
    settings = make_settings("dagger", samples=3)
    networks = make_networks(settings)
    method = Dagger(settings.method, SCORE, True)
    assert method.roll_in(networks, make_batch(), 0.5) is None
    outcome = method(networks, make_batch(), torch.Generator().manual_seed(0), 0.0)
    assert bool(torch.isfinite(outcome.loss))
