"""Several samples for the critic's targets: unbiased, with a variance that falls as 1/K, and a row's own numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.batch import Batch
from seqcritic.data.vocabulary import END
from seqcritic.methods import losses, rollout
from seqcritic.methods.build import build_method
from seqcritic.methods.rollout import Rollout, roll_out
from seqcritic.testing.worlds import World, make_actor, make_batch, make_world
from test_gradients import SCORE, make_networks, make_settings
from test_gradients import make_batch as make_larger_batch

NUM_ROWS = 30_000


@pytest.fixture(autouse=True)
def _the_worlds_length(monkeypatch: pytest.MonkeyPatch):
    """Sequences of the world have at most three tokens; its reference has two."""
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=1))


def roll_out_world(num_samples: int, shaping: bool = True, temperature: float = 0.0, seed: int = 0) -> Rollout:
    actor, batch = make_actor(), make_batch().repeat(NUM_ROWS)
    with torch.no_grad():
        memory = actor.encode(batch.sources, batch.source_mask)
    generator = torch.Generator().manual_seed(seed)
    return roll_out(
        actor, memory, batch, SCORE, shaping, generator, num_further=num_samples - 1, temperature=temperature
    )


def returns_of(world: World, first_token: int) -> tuple[Tensor, Tensor]:
    """All returns after a first token and their exact probabilities."""
    rows = world.tokens[:, 0] == first_token
    probabilities = world.sequence_probabilities.detach()[rows]
    return world.rewards[rows].sum(1), probabilities / probabilities.sum()


@pytest.mark.parametrize("num_samples", [1, 2, 4, 8])
def test_the_variance_of_the_target_falls_as_one_over_the_number_of_samples(num_samples):
    world = make_world(make_actor())
    returns, probabilities = returns_of(world, 1)
    mean = (probabilities * returns).sum()
    variance = float((probabilities * (returns - mean).square()).sum())
    seen = roll_out_world(num_samples)
    targets = losses.returns_to_go(seen.rewards, seen.sample.mask)
    if num_samples > 1:
        targets = losses.several_sample_targets(targets, seen.further_returns, num_samples - 1)
    found = targets[seen.sample.tokens[:, 0] == 1, 0]
    assert len(found) > 3000
    assert float(found.var()) == pytest.approx(variance / num_samples, rel=0.08)
    assert float(found.mean()) == pytest.approx(float(mean), abs=5 * (variance / num_samples / len(found)) ** 0.5)


@pytest.mark.parametrize("shaping", [True, False])
def test_the_further_returns_average_to_the_exact_value_of_every_prefix(shaping):
    world = make_world(make_actor(), shaping)
    exact = world.exact_values()
    seen = roll_out_world(3, shaping)
    tokens, mask = seen.sample.tokens, seen.sample.mask
    assert torch.equal(seen.further_returns[~mask], torch.zeros_like(seen.further_returns[~mask]))
    for row, sequence in enumerate(world.sequences):
        for length in range(1, len(sequence) + 1):
            same = (tokens[:, :length] == torch.tensor(sequence[:length])).all(dim=1)
            found = seen.further_returns[same, length - 1]
            value = float(exact[row, length - 1, sequence[length - 1]])
            if sequence[length - 1] == END or length == 3:
                assert torch.equal(found, seen.rewards[same, length - 1])
            deviation = float(found.std()) / len(found) ** 0.5
            assert float(found.mean()) == pytest.approx(value, abs=5 * deviation + 1e-9)


def test_further_returns_count_the_entropies_that_follow():
    temperature = 0.7
    plain, soft = roll_out_world(2), roll_out_world(2, temperature=temperature)
    following = losses.soft_rewards(
        torch.zeros_like(plain.rewards), plain.sample.entropies, plain.sample.mask, temperature
    )
    # At the last place but one the next state is the last: its entropy is that of the sample's own.
    assert torch.allclose(soft.further_returns[:, 1] - plain.further_returns[:, 1], following[:, 1], atol=1e-12)
    assert torch.equal(soft.further_returns[:, 2], plain.further_returns[:, 2])


def test_a_rows_continuations_do_not_depend_on_the_other_rows():
    networks = make_networks(make_settings("actor-critic"))
    batch = make_larger_batch(4)

    def further(width: int) -> Tensor:
        references = torch.full((4, width), 3)
        references[:, -1] = END
        references[0] = END
        references[0, :4] = batch.references[0]
        mask = torch.ones_like(references, dtype=torch.bool)
        mask[0, 4:] = False
        longer = Batch(batch.sources, batch.source_mask, references, mask)
        memory = networks.actor.encode(batch.sources, batch.source_mask)
        found = roll_out(networks.actor, memory, longer, SCORE, True, torch.Generator().manual_seed(0), num_further=2)
        return found.further_returns[0, :4]

    assert torch.equal(further(4), further(12))
    assert float(further(4).abs().sum()) > 0


def test_several_samples_leave_a_share_of_the_bias_of_bootstrapped_targets(monkeypatch):
    """The loss of an all-zero critic whose targets are known: the mean of the TD targets and the further returns."""
    settings = make_settings("actor-critic", target_samples=4, variance_penalty=0.0)
    networks = make_networks(settings)
    for critic in (networks.critic, networks.target_critic):
        for parameter in critic.parameters():
            parameter.data.zero_()
    seen: list[Rollout] = []
    original = rollout.roll_out
    monkeypatch.setattr(
        "seqcritic.methods.experience.roll_out",
        lambda *given, **named: seen.append(original(*given, **named)) or seen[0],
    )
    method = build_method(settings, "train", SCORE)
    outcome = method(networks, make_larger_batch(), torch.Generator().manual_seed(0), 0.0)
    targets = (seen[0].rewards + 3 * seen[0].further_returns) / 4
    expected = losses.mean_over_sequences(targets.square(), seen[0].sample.mask)
    assert float(outcome.measurements["critic_loss"]) == pytest.approx(float(expected), rel=1e-12)


def test_a_method_without_critic_continues_nothing():
    assert make_settings("reinforce", target_samples=4).method.num_further == 0
