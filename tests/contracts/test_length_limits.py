"""Limits of length: the usual ones, others, and that every search and the stored model keep them."""

from __future__ import annotations

import pytest
import torch

from seqcritic.contracts.actor import LengthLimits
from seqcritic.contracts.batch import Batch, pad
from seqcritic.data.vocabulary import END
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
from seqcritic.decoding.search import Search, find_best
from seqcritic.errors import UserError
from seqcritic.methods.rollout import roll_out
from seqcritic.models.build import build_actor
from seqcritic.models.ensemble import EnsembleActor
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import load_recipe

SOURCES = [[1, 2, 3], [2], [3, 1, 1, 2, 3, 3, 1, 1, 2]]


def make_endless_actor() -> RecurrentActor:
    actor = RecurrentActor(GruActorSettings(embedding=4, hidden=4, attention=4), 4, 4, torch.Generator().manual_seed(0))
    with torch.no_grad():
        actor.decoder.output_layer.bias[END] = -100.0
    return actor


def test_limits_by_hand():
    mask = pad(SOURCES)[1]  # 4, 2 and 10 tokens, ends counted
    assert LengthLimits().of(mask).tolist() == [18, 14, 30]
    assert LengthLimits(0, 5).of(mask).tolist() == [5, 5, 5]
    assert LengthLimits(1.1, 1).of(mask).tolist() == [5, 3, 12]
    assert LengthLimits().of(mask).dtype == LengthLimits(0.5, 1).of(mask).dtype == torch.int64
    assert LengthLimits().signature() == []
    assert LengthLimits(1.5, 4).signature() == ["length:1.5*source+4"]
    assert LengthLimits(beyond_reference=9).signature() == [], "evaluation knows nothing of it"


@pytest.mark.parametrize(
    "search", [Search(), Search(3), Search(3, refill=True), MinimumBayesRisk(2, EditDistanceScore())]
)
@pytest.mark.parametrize("limits", [LengthLimits(), LengthLimits(1, 3), LengthLimits(0, 2)])
def test_every_search_keeps_them(search: Search | MinimumBayesRisk, limits: LengthLimits):
    actor = make_endless_actor()
    actor.limits = limits
    sources, mask = pad(SOURCES)
    for either in (actor, EnsembleActor([actor, make_endless_actor()])):
        found = find_best(either, sources, mask, search)
        assert (found != END).sum(dim=1).tolist() == limits.of(mask).tolist()


def test_they_are_settings_of_the_model():
    settings = load_recipe("demo", ["length.factor=1.5", "length.extra=4", "length.beyond_reference=7"])
    assert build_actor(settings, 5, 5, torch.Generator()).limits == LengthLimits(1.5, 4, 7)
    assert build_actor(load_recipe("demo"), 5, 5, torch.Generator()).limits == LengthLimits()
    for wrong in ("length.extra=0", "length.beyond_reference=0", "length.factor=-1", "length.factor=.nan"):
        with pytest.raises(UserError, match=wrong.partition("=")[0]):
            load_recipe("demo", [wrong])


@pytest.mark.parametrize("beyond", [1, 3, 5])
def test_samples_to_learn_from_grow_beyond_their_references_by_so_much(beyond: int):
    actor = make_endless_actor()
    actor.limits = LengthLimits(beyond_reference=beyond)
    sources, mask = pad(SOURCES)
    batch = Batch(sources, mask, sources, mask)
    memory = actor.encode(sources, mask)
    found = roll_out(actor, memory, batch, EditDistanceScore(), True, torch.Generator()).sample
    assert found.mask.sum(dim=1).tolist() == [len(source) + beyond for source in SOURCES]
