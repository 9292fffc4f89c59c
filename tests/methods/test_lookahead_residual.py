"""Critics that add what the score says of every next token to what their network says."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import seqcritic
from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch, pad
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import Sample
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.lookahead import all_values, token_lookaheads
from seqcritic.methods.policy_evaluation import evaluate_policy
from seqcritic.methods.rollout import Rollout
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruCriticSettings
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.methods import method_section
from seqcritic.tensors.packed import Packed
from seqcritic.testing.critics import TabularCritic
from seqcritic.testing.unbiased import assert_unbiased, method_estimator
from seqcritic.testing.worlds import NUM_STEPS, NUM_TOKENS, World, make_actor, make_batch, make_world
from test_estimators import SCORE

SPECIAL = SpecialTokens(end=(END,), padding=END)


def lookaheads(world: World) -> Tensor:
    """Ψ − R [N, T, V] of every token at every step of every sequence."""
    batch = make_batch().repeat(len(world.sequences))
    return token_lookaheads(SCORE, SPECIAL, world.tokens, world.mask, batch, NUM_TOKENS).padded().double()


def add_to(world: World, rest: Tensor) -> Networks:
    """The world's actor and critics whose networks say `rest` [N, T, V]."""
    critics = [TabularCritic(world, rest, residual_on="lookahead") for _ in range(2)]
    return Networks(world.actor, critic=critics[0], target_critic=critics[1])


def test_lookahead_stand_with_their_tokens():
    world = make_world(make_actor())
    found = lookaheads(world)
    first = world.sequences.index((END,))
    assert found[first, 0].tolist()[1:] == [1.0, 1.0], "one of the reference's two tokens, in or out of place"
    after_one = world.sequences.index((1, END))
    assert found[after_one, 1].tolist()[1:] == [0.0, 1.0], "the second is right now, the first is not"


def test_tokens_of_every_reference_promise_something_and_have_columns():
    codec = seqcritic.pairs([("x", "a b c d e f")], [("x", "d")], target_tokens={"kind": "whitespace"}).codec
    batch = Batch.of(codec, ["x", "x"], [("a b", "c b"), "d e"])
    tokens, mask = pad(codec.encode_references(["", "d"]), codec.special)
    score = EditDistanceScore(unknown=codec.special.unknown)
    found = token_lookaheads(score, codec.special, tokens, mask, batch, codec.num_target_tokens)
    ids = codec.encode_references(["a b c d e f"])[0]
    gains = found.padded()[:, :, ids].tolist()
    assert gains[0][0] == [1, 1, 1, 0, 0, 0], "a or c, in its place, and b, out of place, as no other is right"
    assert gains[1][1] == [0, 0, 0, 0, 1, 0]
    world = make_world()
    critic = TabularCritic(world, world.exact_values(), residual_on="lookahead")
    critic.num_columns = 1
    columns = choose_columns(critic, codec.special, batch, torch.ones(2, codec.num_target_tokens))
    assert columns is not None
    assert set(columns.ids.tolist()) == {END, *ids[:5]}
    few = token_lookaheads(score, codec.special, tokens, mask, batch, codec.num_target_tokens, columns)
    assert few.padded()[:, :, ids].tolist() == gains


def test_with_what_is_left_of_the_exact_values_actor_critic_is_unbiased():
    world = make_world(make_actor())
    rest = world.exact_values() - lookaheads(world)
    rest[:, :, END] = 5.0  # whatever the network says of it, the end is worth nothing more
    networks = add_to(world, rest)
    method = registered_methods()["actor-critic"](method_section()(name="actor-critic"), SCORE, True)
    assert_unbiased(method_estimator(method, networks, world), world)


@pytest.mark.parametrize("temporal_difference", [True, False])
def test_such_a_critic_has_no_error_and_a_wrong_one_has(temporal_difference: bool):
    world = make_world(make_actor())
    sample = world.sample_of(range(len(world.sequences)))
    exact = world.exact_values()
    settings = method_section()(name="actor-critic", variance_penalty=0.0, temporal_difference=temporal_difference)

    def evaluate(rest: Tensor) -> tuple[Tensor, float, float]:
        rollout = Rollout(sample, world.rewards, SPECIAL)
        networks, batch = add_to(world, rest), make_batch().repeat(len(world.sequences))
        found = evaluate_policy(networks, batch, rollout, sample.states, settings, SCORE, torch.Generator())
        return found.values.padded(), found.loss.item(), found.measurements["explained_variance"].item()

    values, loss, explained = evaluate(exact - lookaheads(world))
    assert torch.allclose(values[world.mask], exact[world.mask], atol=1e-10)
    assert (loss < 1e-10) == temporal_difference, "Monte-Carlo targets have their noise"
    worse = exact - lookaheads(world) + torch.linspace(0, 1, NUM_STEPS, dtype=torch.float64)[:, None]
    _, more, less = evaluate(worse)
    assert more > loss + 0.01
    assert less < explained


@pytest.mark.parametrize("num_columns", [None, 1, 5, 6])
def test_values_on_view_are_those_of_training(num_columns: int | None):
    generator = torch.Generator().manual_seed(0)
    settings = GruCriticSettings(embedding=4, hidden=5, attention=3, residual_on="lookahead", columns=num_columns)
    actor, critic = make_actor(), RecurrentCritic(settings, 6, 5, generator).double()
    references, reference_mask = pad([[1, 2, 3, 1], [2]])
    batch = Batch(*pad([[1, 2], [2]]), references, reference_mask)
    tokens, mask = pad([[1, 3, 1], [], [2, 2], [2, 1, 3]])
    states = torch.randn(*tokens.shape, 5, dtype=torch.float64, generator=generator)
    probabilities = Packed.of(torch.full((*tokens.shape, 6), 1 / 6, dtype=torch.float64), mask)
    nothing = torch.zeros(tokens.shape, dtype=torch.float64)
    sample = Sample(tokens, mask, probabilities, states, nothing, nothing)
    networks, score = Networks(actor, critic=critic, target_critic=critic), BleuScore(None)
    method = method_section()(name="actor-critic", samples=2)
    trained = evaluate_policy(
        networks, batch, Rollout(sample, nothing, SPECIAL), states, method, score, torch.Generator()
    ).values.padded()
    columns = choose_columns(critic, SPECIAL, batch.repeat(2), probabilities.first())
    shown = all_values(critic, score, SPECIAL, batch.repeat(2), tokens, mask, states, columns)
    assert torch.allclose(shown, trained)
    assert torch.equal(shown[mask][:, 4], shown[mask][:, 5]) == (num_columns == 1), "they are in no reference"
    critic.residual_on = "none"
    network = all_values(critic, score, SPECIAL, batch.repeat(2), tokens, mask, states, columns)
    assert bool((shown[:, :, END] == 0).all())
    first = (shown - network)[:, 0]
    assert (first[2, 2] - first[2, 1]).item() > 0.1, "the second reference has 2, not 1"
