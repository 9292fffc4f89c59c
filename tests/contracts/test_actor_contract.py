"""What every actor must hold, whoever wrote it; and every method on actors that are not ours."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from foreign_actors import (
    NUM_TOKENS,
    SIZE,
    SPECIAL,
    GrowingActor,
    ListeningActor,
    LstmActor,
    make_actor,
    make_batch,
)
from seqcritic.contracts.actor import Actor, SpecialTokens
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.decoding.beam import beam_search
from seqcritic.decoding.prefix_rollouts import roll_out_prefixes
from seqcritic.decoding.sampling import greedy, sample
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.models.baseline import LinearBaseline
from seqcritic.models.ensemble import EnsembleActor
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.methods import MIXED, MethodSettings, method_labels, method_section
from seqcritic.tensors import rows

SIZES = {"embedding": 5, "hidden": 6, "attention": 4, "initial_range": None}
OURS = SpecialTokens(end=(END,), padding=END)
FOREIGN = (LstmActor, GrowingActor)


def make_recurrent(**changes: object) -> RecurrentActor:
    settings = GruActorSettings(**SIZES, **changes)
    return RecurrentActor(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(0)).double()


ACTORS = {
    "recurrent": make_recurrent,
    "recurrent, window encoder, tied": lambda: make_recurrent(encoder="window", tied=True),
    "recurrent, projected": lambda: make_recurrent(output_width=3),
    "recurrent, two layers": lambda: make_recurrent(encoder_layers=2, dropout=0.2),
    "lstm": lambda: make_actor(LstmActor),
    "growing": lambda: make_actor(GrowingActor),
    "ensemble": lambda: EnsembleActor([make_recurrent(), make_recurrent(encoder="window", tied=True)]),
}
every_actor = pytest.mark.parametrize("actor", [make() for make in ACTORS.values()], ids=list(ACTORS))
TOKENS = torch.tensor([[3, 1, 4, 2], [1, 2, 2, 1], [4, 4, 2, 3]])


def flat(tree: object) -> list[Tensor]:
    """Return all tensors of a tree that have rows."""
    found: list[Tensor] = []
    rows._map(lambda tensor: (found.append(tensor), tensor)[1], tree)
    return found


@every_actor
def test_stepping_equals_scoring(actor: Actor):
    batch = make_batch(actor.special)
    memory = actor.encode(batch.sources, batch.source_mask)
    logits, views = actor.score(memory, TOKENS)
    state = actor.start(memory)
    for step in range(TOKENS.shape[1]):
        assert torch.allclose(actor.logits(state), logits[:, step], atol=1e-12)
        assert torch.allclose(actor.view(state), views[:, step], atol=1e-12)
        state = actor.step(memory, state, TOKENS[:, step])
    assert logits.shape == (3, 4, actor.num_tokens)
    assert views.shape == (3, 4, actor.state_size)


@every_actor
def test_only_the_unmasked_tokens_matter(actor: Actor):
    batch = make_batch(actor.special)
    memory = actor.encode(batch.sources, batch.source_mask)
    mask = torch.arange(4) < torch.tensor([[4], [2], [1]])
    features, views = actor.features(memory, TOKENS, mask)
    logits, all_views = actor.score(memory, TOKENS)
    found = actor.logits_of(features).padded()
    assert torch.allclose(found[mask], logits[mask], atol=1e-12)
    assert torch.allclose(views[mask], all_views[mask], atol=1e-12)
    assert not found[~mask].any()


@every_actor
def test_padding_of_the_source_changes_nothing(actor: Actor):
    batch = make_batch(actor.special)
    together = actor.score(actor.encode(batch.sources, batch.source_mask), TOKENS)[0]
    for row in range(3):
        length = int(batch.source_mask[row].sum())
        alone = actor.encode(batch.sources[row : row + 1, :length], batch.source_mask[row : row + 1, :length])
        assert torch.allclose(actor.score(alone, TOKENS[row : row + 1])[0][0], together[row], atol=1e-12)


@every_actor
def test_select_and_repeat_commute_with_step_and_the_old_state_stays_valid(actor: Actor):
    batch = make_batch(actor.special)
    memory = actor.encode(batch.sources, batch.source_mask)
    state = actor.step(memory, actor.start(memory), TOKENS[:, 0])
    before = [tensor.clone() for tensor in flat(state)]
    after = actor.step(memory, state, TOKENS[:, 1])
    assert all(torch.equal(one, other) for one, other in zip(before, flat(state), strict=True))
    order = torch.tensor([2, 0, 2])
    chosen = actor.step(rows.select(memory, order), rows.select(state, order), TOKENS[order, 1])
    assert torch.allclose(actor.logits(chosen), actor.logits(after)[order], atol=1e-12)
    many = actor.step(rows.repeat(memory, 2), rows.repeat(state, 2), TOKENS[:, 1].repeat_interleave(2))
    assert torch.allclose(actor.view(many), actor.view(after).repeat_interleave(2, dim=0), atol=1e-12)


@every_actor
def test_samples_have_the_probabilities_they_are_scored_with(actor: Actor):
    batch = make_batch(actor.special).repeat(20)
    memory = actor.encode(batch.sources, batch.source_mask)
    drawn = sample(actor, memory, torch.full((60,), 7), torch.Generator().manual_seed(1))
    logits, _ = actor.score(memory, drawn.tokens)
    taken = torch.log_softmax(logits, 2).gather(2, drawn.tokens[:, :, None])[:, :, 0]
    assert torch.allclose(drawn.token_log_probabilities[drawn.mask], taken[drawn.mask], atol=1e-12)
    ends = actor.special.is_end(drawn.tokens) & drawn.mask
    assert bool((ends.sum(dim=1) <= 1).all()), "nothing is drawn after the end"
    assert len({tuple(row) for row in drawn.tokens.tolist()}) > 20
    assert bool((drawn.tokens[~drawn.mask] == actor.special.padding).all())


@every_actor
def test_a_beam_of_one_is_greedy_and_a_wide_one_finds_no_less(actor: Actor):
    batch = make_batch(actor.special)
    found = greedy(actor, batch.sources, batch.source_mask)
    for row, ([narrow], [wide]) in enumerate(
        zip(
            beam_search(actor, batch.sources, batch.source_mask, 1),
            beam_search(actor, batch.sources, batch.source_mask, 60),
            strict=True,
        )
    ):
        mask = actor.special.up_to_end(found[row : row + 1])
        length = int(actor.special.lengths(found[row : row + 1], mask))
        assert narrow.tokens == found[row, :length].tolist()[: len(narrow.tokens)]
        if narrow.finished:
            assert wide.score >= narrow.score - 1e-12


@every_actor
def test_a_prefix_is_continued_by_the_actor_itself(actor: Actor):
    batch = make_batch(actor.special)
    memory = actor.encode(batch.sources, batch.source_mask)
    maximum_lengths = torch.full((3,), 6)
    drawn = sample(actor, memory, maximum_lengths, torch.Generator().manual_seed(4))
    found = roll_out_prefixes(
        actor, memory, drawn.tokens, drawn.mask, maximum_lengths, 2, torch.Generator().manual_seed(5)
    )
    assert len(found.rows) == 2 * int(drawn.mask[:, 1:].sum())
    for row, position, tokens in zip(found.rows.tolist(), found.positions.tolist(), found.tokens.tolist(), strict=True):
        assert tokens[: position + 1] == drawn.tokens[row, : position + 1].tolist()
    slow = copy.deepcopy(actor)
    slow.fixed_size_state = False
    again = roll_out_prefixes(
        slow, memory, drawn.tokens, drawn.mask, maximum_lengths, 2, torch.Generator().manual_seed(5)
    )
    assert torch.equal(again.tokens, found.tokens), "position by position or all at once, the draws are the same"


def make_networks(actor: Actor, settings: MethodSettings) -> Networks:
    """Return what a method needs beside an actor."""
    networks, names = Networks(actor), {spec.name for spec in settings.networks}
    generator = torch.Generator().manual_seed(2)
    if "delayed_actor" in names:
        networks.delayed_actor = copy.deepcopy(actor).requires_grad_(False)
    if "critic" in names:
        networks.critic = RecurrentCritic(GruCriticSettings(**SIZES), NUM_TOKENS, SIZE, generator).double()
        networks.target_critic = copy.deepcopy(networks.critic).requires_grad_(False)
    if "baseline" in names:
        networks.baseline = LinearBaseline(SIZE).double()
    return networks


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("label", [label for label in method_labels() if label != "likelihood"])
def test_every_method_trains_an_actor_that_is_not_ours(label: str, kind: type[Actor]):
    name, mixed, _ = label.partition(MIXED)
    settings = method_section()(name=name, likelihood_weight=0.1 if mixed else 0.0, target_samples=2)
    networks, score = make_networks(make_actor(kind), settings), EditDistanceScore(normalise=False)
    method, batch = registered_methods()[name](settings, score, True), make_batch(networks.actor.special)
    if networks.critic is not None:
        CriticTraining(settings, score, True)(networks, batch, torch.Generator(), 0.0).loss.backward()
    # A seed with which no method's loss is nothing: returns differ, and so does what direct-loss decodes.
    method(networks, batch, torch.Generator().manual_seed(6), 0.5).loss.backward()
    moved = [parameter.grad is not None and bool(parameter.grad.any()) for parameter in networks.actor.parameters()]
    assert all(moved)
    assert all(bool(torch.isfinite(parameter.grad).all()) for parameter in networks.actor.parameters())


@pytest.mark.parametrize("label", ["actor-critic", "mixer", "minimum-risk", "beam-search-optimization"])
def test_sources_may_be_features_with_a_mask(label: str):
    settings = method_section()(name=label, target_samples=2)
    networks, score = make_networks(make_actor(ListeningActor), settings), EditDistanceScore(normalise=False)
    ids = make_batch(SPECIAL)
    batch = replace(ids, sources=torch.nn.functional.one_hot(ids.sources, NUM_TOKENS).double())
    registered_methods()[label](settings, score, True)(networks, batch, torch.Generator(), 0.5).loss.backward()
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in networks.actor.parameters())
    noisy = torch.where(batch.source_mask[:, :, None], batch.sources, torch.randn(batch.sources.shape).double())
    few = batch.part(1, 3)
    with torch.no_grad():
        clean, padded, cut = (
            networks.actor.encode(sources, mask)
            for sources, mask in (
                (batch.sources, batch.source_mask),
                (noisy, batch.source_mask),
                (few.sources, few.source_mask),
            )
        )
    assert torch.equal(clean, padded)
    torch.testing.assert_close(clean[1:3], cut)
    assert not torch.allclose(clean[0], clean[1])


def test_special_tokens_tell_what_belongs_to_an_answer():
    special = SpecialTokens(end=(5, 0), padding=7, begin=6, unknown=1)
    tokens = torch.tensor([[1, 2, 0, 7, 7], [5, 7, 7, 7, 7], [2, 3, 4, 2, 3]])
    assert special.up_to_end(tokens).sum(dim=1).tolist() == [3, 1, 5]
    assert special.lengths(tokens, special.up_to_end(tokens)).tolist() == [2, 0, 5]
    assert special.is_over(tokens)[0].tolist() == [False, False, True, True, True]
    assert special.ordinary(8).tolist() == [1, 2, 3, 4]
    assert SPECIAL.ordinary(8).tolist() == [0, 1, 2, 3, 4]
    assert OURS.ordinary(4).tolist() == [1, 2, 3]
