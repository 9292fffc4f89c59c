"""Critics that read and value tokens by the actor's vectors."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.batch import pad
from seqcritic.contracts.networks import polyak_update
from seqcritic.errors import UserError
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.settings.io import load_recipe
from seqcritic.tensors.values import Columns

NUM_TOKENS = 9
REFERENCES = pad([[1, 2, 5], [7]])
TOKENS, MASK = pad([[1, 3], [7, 7, 2]])


def make_actor(**changes: object) -> RecurrentActor:
    settings = GruActorSettings(embedding=4, hidden=5, attention=3, initial_range=None, **changes)
    return RecurrentActor(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(0)).double()


def make_critic(actor: Actor, **changes: object) -> RecurrentCritic:
    settings = GruCriticSettings(
        embedding=4, hidden=6, attention=3, initial_range=None, embeddings="actor", reads_actor_states=False, **changes
    )
    return RecurrentCritic.build(settings, actor, torch.Generator().manual_seed(1)).double()


def values_of(critic: RecurrentCritic, columns: Columns | None = None) -> Tensor:
    views = torch.zeros(*TOKENS.shape, 5, dtype=torch.float64)
    return critic.masked_values(critic.encode(*REFERENCES), TOKENS, views, MASK, columns).packed.rows


@pytest.mark.parametrize("changes", [{}, {"tied": True}, {"output_width": 3}], ids=str)
def test_values_are_products_with_the_vectors_made_one_long(changes: dict[str, object]):
    actor = make_actor(**changes)
    critic = make_critic(actor, columns=4)
    torch.nn.init.normal_(critic.decoder.output_layer.bias, generator=torch.Generator().manual_seed(2))
    vectors = actor.token_vectors()
    assert vectors is actor.decoder.output_layer.weight
    memory = critic.encode(*REFERENCES)
    features, _ = critic.decoder.features(memory, TOKENS, None, MASK)
    layer = critic.decoder.output_layer
    unit = vectors.detach() / vectors.detach().norm(dim=1, keepdim=True)
    expected = features.rows @ layer.projection.weight.T @ unit.T + layer.bias
    assert torch.allclose(values_of(critic), expected, atol=1e-12)
    ids = torch.tensor([0, 2, 7])
    few = values_of(critic, Columns(ids, NUM_TOKENS))
    assert torch.allclose(few[:, :-1], expected[:, ids], atol=1e-12)
    inputs = features.rows @ layer.projection.weight.T
    assert torch.allclose(few[:, -1:], inputs @ critic.rest.weight.T + critic.rest.bias, atol=1e-12)
    assert torch.allclose(critic.decoder.embedding(ids), normalize(vectors[ids]))


def test_no_gradient_reaches_the_actor_and_its_vectors_are_no_weight_of_the_critic():
    actor = make_actor()
    critic = make_critic(actor)
    values_of(critic).square().sum().backward()
    assert all(weight.grad is None for weight in actor.parameters())
    assert all(weight.grad is not None for weight in critic.parameters())
    wide = {name: weight.shape for name, weight in critic.named_parameters() if NUM_TOKENS in weight.shape}
    assert wide == {"decoder.output_layer.bias": (NUM_TOKENS,)}
    assert not any(name.startswith("_") or "vectors" in name for name in critic.state_dict())


def test_a_target_copy_holds_the_same_actor_and_follows_without_moving_it():
    actor = make_actor()
    critic = make_critic(actor)
    target = copy.deepcopy(critic).requires_grad_(False)
    before = {name: weight.clone() for name, weight in actor.state_dict().items()}
    with torch.no_grad():
        for weight in critic.parameters():
            weight += 1
    polyak_update(target, critic, 0.25)
    assert all(torch.equal(weight, before[name]) for name, weight in actor.state_dict().items())
    polyak_update(target, critic, 1.0)
    with torch.no_grad():
        actor.decoder.output_layer.weight[2] = torch.linspace(-1, 1, actor.decoder.output_layer.width)
    assert torch.equal(values_of(target), values_of(critic)), "both see the actor as it is"


def test_what_does_not_go_together_is_refused():
    class Silent(RecurrentActor):
        def token_vectors(self) -> None:
            return None

    silent = Silent(GruActorSettings(embedding=4, hidden=5, attention=3), 9, 9, torch.Generator())
    with pytest.raises(UserError, match=r"^critic.embeddings=actor: Silent offers no vectors of its tokens"):
        make_critic(silent)
    for wrong in ("critic.output_width=8", "critic.from_actor=true"):
        with pytest.raises(UserError, match=f"^{wrong.partition('=')[0]}: "):
            load_recipe("demo", ["critic.embeddings=actor", wrong])
