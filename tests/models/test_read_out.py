"""The read-outs: what they compute, which weights they have, what the settings refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seqcritic.errors import UserError
from seqcritic.models.actor import RecurrentActor
from seqcritic.models.critic import RecurrentCritic
from seqcritic.models.read_out import ProjectedReadOut
from seqcritic.models.settings import GruActorSettings, GruCriticSettings
from seqcritic.settings_io import settings_from

SIZES = {"embedding": 4, "hidden": 5, "attention": 3, "initial_range": None}
FEATURES = 5 + 2 * 5
NUM_TOKENS = 9


def make_actor(**changes: Any) -> RecurrentActor:
    settings = GruActorSettings(**SIZES, **changes)
    return RecurrentActor(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(1)).double()


def test_a_projected_read_out_is_a_tanh_layer_before_its_own_matrix():
    actor = make_actor(read_out=6)
    weights = dict(actor.decoder.read_out.named_parameters())
    assert {name: tuple(weight.shape) for name, weight in weights.items()} == {
        "weight": (NUM_TOKENS, 6),
        "bias": (NUM_TOKENS,),
        "projection.weight": (6, FEATURES),
        "projection.bias": (6,),
    }
    features = torch.randn(2, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    hidden = torch.tanh(features @ weights["projection.weight"].t() + weights["projection.bias"])
    expected = hidden @ weights["weight"].t() + weights["bias"]
    found = actor.decoder.read_out(features)
    assert torch.allclose(found, expected, atol=1e-12)


def test_its_weights_are_drawn_like_all_others():
    drawn = make_actor(read_out=6)
    assert float(drawn.decoder.read_out.weight.detach().abs().max()) <= 1 / 6**0.5
    settings = GruActorSettings(**SIZES | {"initial_range": 0.05}, read_out=6)
    layer = RecurrentActor(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(1)).decoder.read_out
    assert isinstance(layer, ProjectedReadOut)
    assert not layer.bias.any()
    assert not layer.projection.bias.any()
    assert 0 < float(layer.projection.weight.detach().abs().max()) <= 0.05


def test_without_a_width_the_weights_are_those_of_always():
    """Folders of models name them so."""
    names = {name for name, _ in make_actor().named_parameters() if "read_out" in name}
    assert names == {"decoder.read_out.weight", "decoder.read_out.bias"}
    tied = {name for name, _ in make_actor(tied=True, read_out=4).named_parameters() if "read_out" in name}
    assert tied == {"decoder.read_out.bias", "decoder.read_out.projection.weight"}


def test_a_critic_has_its_own_width():
    critic = RecurrentCritic(GruCriticSettings(**SIZES, read_out=2), NUM_TOKENS, 5, torch.Generator().manual_seed(1))
    assert critic.decoder.read_out.weight.shape == (NUM_TOKENS, 2)


@pytest.mark.parametrize("network", ["actor", "critic"])
def test_a_tied_read_out_of_another_width_is_refused(network: str):
    assert getattr(settings_from({network: {"tied": True, "read_out": 100}}), network).read_out == 100
    with pytest.raises(
        UserError, match=rf"^{network}\.read_out: a tied read-out is as wide as the embedding \(100\), not 64"
    ):
        settings_from({network: {"tied": True, "read_out": 64}})
    with pytest.raises(UserError, match=f"{network}.read_out"):
        settings_from({network: {"read_out": 0}})


@pytest.mark.parametrize("changes", [{}, {"read_out": 6}, {"tied": True, "read_out": 4}], ids=str)
def test_a_sharper_actor_has_all_its_logits_multiplied_and_nothing_else(changes: dict[str, Any]):
    actor = make_actor(**changes)
    features = torch.randn(2, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    before, embedding = actor.decoder.read_out(features), actor.decoder.embedding.weight.clone()
    actor.sharpen(2.5)
    assert torch.allclose(actor.decoder.read_out(features), 2.5 * before, atol=1e-12)
    assert torch.equal(actor.decoder.embedding.weight, embedding)
