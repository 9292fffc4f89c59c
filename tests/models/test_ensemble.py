"""Ensembles: probabilities averaged by hand, in scoring, greedy search, sampling and beam search."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.batch import pad
from seqcritic.data.vocabulary import END
from seqcritic.decoding.beam import beam_search
from seqcritic.decoding.sampling import greedy, sample
from seqcritic.errors import UserError
from seqcritic.models.ensemble import EnsembleActor
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.settings import GruActorSettings

SIZES = GruActorSettings(embedding=5, hidden=6, attention=5, initial_range=None)
SOURCES = [[1, 2, 3], [2], [3, 1, 1, 2, 3, 3], [1, 1]]
TOKENS = torch.tensor([[3, 1, 2, 0], [1, 2, 2, 1], [1, 1, 2, 3], [2, 3, 1, 1]])


def make_actor(seed: int, num_tokens: int = 4, **changes: object) -> RecurrentActor:
    settings = SIZES.model_copy(update=changes)
    actor = RecurrentActor(settings, 4, num_tokens, torch.Generator().manual_seed(seed)).double()
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.mul_(3.0)
    return actor


def make_members() -> list[Actor]:
    return [make_actor(1), make_actor(3, hidden=9), make_actor(2, encoder="window", tied=True)]


@torch.no_grad()
def probabilities(actor: Actor, sources: list[list[int]], tokens: Tensor) -> Tensor:
    return torch.softmax(actor.score(actor.encode(*pad(sources)), tokens)[0], dim=2)


def test_probabilities_are_the_mean_of_the_members():
    members = make_members()
    ensemble = EnsembleActor(members)
    by_hand = sum(probabilities(member, SOURCES, TOKENS) for member in members) / 3
    assert torch.allclose(probabilities(ensemble, SOURCES, TOKENS), by_hand, atol=1e-12)
    with torch.no_grad():
        memory = ensemble.encode(*pad(SOURCES))
        state = ensemble.start(memory)
        for step in range(TOKENS.shape[1]):
            logits = ensemble.logits(state)
            assert torch.allclose(logits, by_hand[:, step].log(), atol=1e-12), "already normalised"
            assert ensemble.view(state).shape == (4, ensemble.state_size)
            state = ensemble.step(memory, state, TOKENS[:, step])
        attention = ensemble.attention(memory, TOKENS)
    assert attention is not None
    assert torch.allclose(attention.sum(dim=2), torch.ones(4, 4, dtype=torch.float64))
    assert not torch.allclose(by_hand, probabilities(members[0], SOURCES, TOKENS), atol=0.05)


class PlainActor(RecurrentActor):
    """The same equations, whose rows stand in the order of the mask instead of that of a packing."""

    features = Actor.features
    logits_of = Actor.logits_of


def test_members_that_pack_their_rows_in_other_orders_are_averaged_token_by_token():
    torch.manual_seed(3)
    packing, plain = make_actor(1), make_actor(2)
    plain.__class__ = PlainActor
    sources, tokens = torch.randint(1, 4, (3, 4)), torch.randint(1, 4, (3, 5))
    mask = torch.arange(5) < torch.tensor([2, 5, 3])[:, None]

    def scored(actor: Actor) -> Tensor:
        memory = actor.encode(sources, torch.ones(3, 4, dtype=torch.bool))
        features, _ = actor.features(memory, tokens, mask)
        return actor.logits_of(features).padded().softmax(dim=2)[mask]

    with torch.no_grad():
        expected = (scored(packing) + scored(plain)) / 2
        for members in ([packing, plain], [plain, packing]):
            torch.testing.assert_close(scored(EnsembleActor(members)), expected)


def test_an_ensemble_of_one_is_its_member():
    member = make_actor(0)
    ensemble = EnsembleActor([member])
    sources, mask = pad(SOURCES)
    assert torch.equal(greedy(ensemble, sources, mask), greedy(member, sources, mask))
    assert beam_search(ensemble, sources, mask, 4, 0.3, num_best=4) == beam_search(
        member, sources, mask, 4, 0.3, num_best=4
    )
    drawn, expected = (
        sample(actor, actor.encode(sources, mask), LengthLimits().of(mask), torch.Generator().manual_seed(1))
        for actor in (ensemble, member)
    )
    assert torch.equal(drawn.tokens, expected.tokens)
    assert torch.equal(drawn.token_log_probabilities, expected.token_log_probabilities)


def test_greedy_search_and_samples_are_those_of_the_mean():
    members = make_members()
    ensemble, (sources, mask) = EnsembleActor(members), pad(SOURCES)
    found = greedy(ensemble, sources, mask)
    mean = sum(probabilities(member, SOURCES, found) for member in members) / 3
    counted = ensemble.special.up_to_end(found) & (torch.arange(found.shape[1]) < LengthLimits().of(mask)[:, None])
    assert torch.equal(mean.argmax(dim=2)[counted], found[counted])
    assert all(not torch.equal(found, greedy(member, sources, mask)) for member in members)
    drawn = sample(ensemble, ensemble.encode(sources, mask), LengthLimits().of(mask), torch.Generator().manual_seed(1))
    mean = sum(probabilities(member, SOURCES, drawn.tokens) for member in members) / 3
    taken = mean.gather(2, drawn.tokens[:, :, None])[:, :, 0].log()
    assert torch.allclose(drawn.token_log_probabilities[drawn.mask], taken[drawn.mask], atol=1e-12)


@pytest.mark.parametrize("refill", [False, True])
def test_a_beam_that_covers_everything_is_brute_force(refill: bool):
    members, cap = make_members(), 4
    found = beam_search(
        EnsembleActor(members), *pad(SOURCES), 108, 0.2, torch.full((len(SOURCES),), cap), num_best=5, refill=refill
    )
    for row, source in zip(found, SOURCES, strict=True):
        scored = []
        for length in range(cap):
            tokens = torch.tensor([(*content, END) for content in product(range(1, 4), repeat=length)])
            every = [source] * len(tokens)
            mean = sum(probabilities(member, every, tokens) for member in members) / 3
            log_probs = mean.log().gather(2, tokens[:, :, None]).sum(dim=(1, 2))
            scored += zip((log_probs + 0.2 * length).tolist(), tokens[:, :-1].tolist(), strict=True)
        finished = [hypothesis for hypothesis in row if hypothesis.finished]
        best = sorted(scored, reverse=True)[: len(finished)]
        assert finished
        assert [hypothesis.tokens for hypothesis in finished] == [tokens for _, tokens in best]
        assert [hypothesis.score for hypothesis in finished] == pytest.approx([score for score, _ in best], abs=1e-9)


def test_members_with_dropout_each_have_masks_of_their_own():
    ensemble = EnsembleActor([make_actor(0, dropout=0.4), make_actor(1), make_actor(2, dropout=0.4)])
    masks = ensemble.draw_masks(4, torch.Generator().manual_seed(1))
    assert masks is not None
    assert [own is None for own in masks] == [False, True, False]
    dropped = ensemble.score(ensemble.encode(*pad(SOURCES), masks), TOKENS)[0]
    assert not torch.allclose(dropped, ensemble.score(ensemble.encode(*pad(SOURCES)), TOKENS)[0], atol=1e-3)
    assert EnsembleActor(make_members()).draw_masks(4, torch.Generator()) is None


def test_members_that_write_other_tokens_are_refused():
    with pytest.raises(UserError, match="vocabularies of 4 and 5 tokens"):
        EnsembleActor([make_actor(0), make_actor(1, num_tokens=5)])
    with pytest.raises(UserError, match="at least one actor"):
        EnsembleActor([])
