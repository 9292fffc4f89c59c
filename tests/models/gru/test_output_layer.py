"""The output layers: what they compute, which weights they have, what the settings refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seqcritic.errors import UserError
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.output_layer import ProjectedOutputLayer
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.settings.io import settings_from

SIZES = {"embedding": 4, "hidden": 5, "attention": 3, "initial_range": None}
FEATURES = 5 + 2 * 5
NUM_TOKENS = 9


def make_actor(**changes: Any) -> RecurrentActor:
    settings = GruActorSettings(**SIZES, **changes)
    return RecurrentActor(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(1)).double()


def test_a_projected_output_layer_is_a_tanh_layer_before_its_own_matrix():
    actor = make_actor(output_width=6)
    weights = dict(actor.decoder.output_layer.named_parameters())
    assert {name: tuple(weight.shape) for name, weight in weights.items()} == {
        "weight": (NUM_TOKENS, 6),
        "bias": (NUM_TOKENS,),
        "projection.weight": (6, FEATURES),
        "projection.bias": (6,),
    }
    features = torch.randn(2, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    hidden = torch.tanh(features @ weights["projection.weight"].t() + weights["projection.bias"])
    expected = hidden @ weights["weight"].t() + weights["bias"]
    found = actor.decoder.output_layer(features)
    assert torch.allclose(found, expected, atol=1e-12)


def test_its_weights_are_drawn_like_all_others():
    drawn = make_actor(output_width=6)
    assert float(drawn.decoder.output_layer.weight.detach().abs().max()) <= 1 / 6**0.5
    settings = GruActorSettings(**SIZES | {"initial_range": 0.05}, output_width=6)
    layer = RecurrentActor(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(1)).decoder.output_layer
    assert isinstance(layer, ProjectedOutputLayer)
    assert not layer.bias.any()
    assert not layer.projection.bias.any()
    assert 0 < float(layer.projection.weight.detach().abs().max()) <= 0.05


def test_without_a_width_the_weights_are_those_of_always():
    """Folders of models name them so."""
    names = {name for name, _ in make_actor().named_parameters() if "output_layer" in name}
    assert names == {"decoder.output_layer.weight", "decoder.output_layer.bias"}
    tied = {name for name, _ in make_actor(tied=True, output_width=4).named_parameters() if "output_layer" in name}
    assert tied == {"decoder.output_layer.bias", "decoder.output_layer.projection.weight"}


def test_a_critic_has_its_own_width():
    critic = RecurrentCritic(
        GruCriticSettings(**SIZES, output_width=2), NUM_TOKENS, 5, torch.Generator().manual_seed(1)
    )
    assert critic.decoder.output_layer.weight.shape == (NUM_TOKENS, 2)


@pytest.mark.parametrize("network", ["actor", "critic"])
def test_a_tied_output_layer_of_another_width_is_refused(network: str):
    assert getattr(settings_from({network: {"tied": True, "output_width": 100}}), network).output_width == 100
    with pytest.raises(
        UserError, match=rf"^{network}\.output_width: a tied output layer is as wide as the embedding \(100\), not 64"
    ):
        settings_from({network: {"tied": True, "output_width": 64}})
    with pytest.raises(UserError, match=f"{network}.output_width"):
        settings_from({network: {"output_width": 0}})


@pytest.mark.parametrize("changes", [{}, {"output_width": 6}, {"tied": True, "output_width": 4}], ids=str)
def test_a_sharper_actor_has_all_its_logits_multiplied_and_nothing_else(changes: dict[str, Any]):
    actor = make_actor(**changes)
    features = torch.randn(2, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    before, embedding = actor.decoder.output_layer(features), actor.decoder.embedding.weight.clone()
    actor.sharpen(2.5)
    assert torch.allclose(actor.decoder.output_layer(features), 2.5 * before, atol=1e-12)
    assert torch.equal(actor.decoder.embedding.weight, embedding)
