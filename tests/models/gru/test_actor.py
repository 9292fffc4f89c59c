"""The actor's contract: stepping agrees with scoring, padding is never read, attention is the paper's."""

from __future__ import annotations

import pytest
import torch

from seqcritic.contracts.batch import pad
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.attention import Attention
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.decoder import Decoder
from seqcritic.models.gru.encoder import WindowEncoder
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings

SIZES = GruActorSettings(embedding=6, hidden=7, attention=5, initial_range=None)
WINDOW = SIZES.model_copy(update={"encoder": "window", "tied": True})
DEEP = SIZES.model_copy(update={"encoder_layers": 2})


def make_actor(dtype: torch.dtype = torch.float32, settings: GruActorSettings = SIZES) -> RecurrentActor:
    return RecurrentActor(settings, 9, 9, torch.Generator().manual_seed(0)).to(dtype)


def make_critic(reads_actor_states: bool) -> RecurrentCritic:
    settings = GruCriticSettings(
        embedding=6, hidden=7, attention=5, initial_range=None, reads_actor_states=reads_actor_states
    )
    return RecurrentCritic(settings, 9, 4, torch.Generator().manual_seed(1)).double()


SOURCES = [[1, 2, 3, 4], [5, 6], [7]]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("settings", [SIZES, WINDOW, DEEP])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_stepping_equals_scoring(dtype, tolerance, settings, dropout):
    actor = make_actor(dtype, settings.model_copy(update={"dropout": dropout}))
    memory = actor.encode(*pad(SOURCES), actor.draw_masks(len(SOURCES), torch.Generator().manual_seed(3)))
    assert (memory.masks is None) == (dropout == 0)
    tokens = torch.tensor([[3, 1, 4, 0], [1, 0, 0, 0], [5, 8, 2, 6]])
    logits, states = actor.score(memory, tokens)
    state = actor.start(memory)
    for step in range(tokens.shape[1]):
        assert torch.allclose(actor.logits(state), logits[:, step], atol=tolerance)
        assert torch.allclose(state.hidden, states[:, step], atol=tolerance)
        state = actor.step(memory, state, tokens[:, step])


@pytest.mark.parametrize("settings", [SIZES, WINDOW, DEEP])
def test_padding_of_the_source_changes_nothing(settings):
    actor = make_actor(torch.float64, settings)
    tokens = torch.tensor([[3, 1, 4, 0]])
    together = actor.score(actor.encode(*pad(SOURCES)), tokens.expand(3, -1))[0]
    for row, source in enumerate(SOURCES):
        alone = actor.score(actor.encode(*pad([source])), tokens)[0]
        assert torch.allclose(together[row], alone[0], atol=1e-12)


def test_a_score_depends_only_on_earlier_tokens():
    actor = make_actor(torch.float64)
    memory = actor.encode(*pad(SOURCES))
    tokens = torch.tensor([[3, 1, 4, 2], [1, 6, 2, 3], [5, 8, 2, 6]])
    before = actor.score(memory, tokens)[0]
    tokens[:, 2] = 7
    after = actor.score(memory, tokens)[0]
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3], after[:, 3])


def test_attention_is_additive_with_tanh():
    """The logistic form must give the paper's v · tanh(Ws + Uh + b)."""
    torch.manual_seed(0)
    attention = Attention(4, 3, 5).double()
    annotations, states = torch.randn(2, 6, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    memory = attention.prepare_memory(annotations, mask)
    context, weights = attention.context(2 * attention.query(states), 2 * attention.energy.weight[0], memory)
    hidden = torch.tanh(attention.query(states)[:, None] + attention.key(annotations))
    energies = attention.energy(hidden)[:, :, 0].masked_fill(~mask, -torch.inf)
    expected = torch.softmax(energies, 1)
    assert torch.allclose(weights, expected, atol=1e-12)
    assert torch.equal(weights[1, 4:], torch.zeros(2, dtype=torch.float64))
    assert torch.allclose(context, (expected[:, :, None] * annotations).sum(1), atol=1e-12)


def test_the_transition_is_a_gru_of_token_and_context():
    torch.manual_seed(0)
    decoder = Decoder(torch.nn.Embedding(9, 6), 7, 4, 5).double()
    memory = decoder.attention.prepare_memory(
        torch.randn(3, 5, 4, dtype=torch.float64), torch.ones(3, 5, dtype=torch.bool)
    )
    state = decoder.start(memory)
    tokens = torch.tensor([1, 2, 3])
    cell = torch.nn.GRUCell(6 + 4, 7).double()
    with torch.no_grad():
        cell.weight_ih.copy_(torch.cat([decoder.token_gates.weight, decoder.context_gates.weight], 1))
        cell.bias_ih.copy_(decoder.token_gates.bias)
        cell.weight_hh.copy_(decoder.state_gates.weight)
        cell.bias_hh.copy_(decoder.state_gates.bias)
    expected = cell(torch.cat([decoder.embedding(tokens), state.context], 1), state.hidden)
    assert torch.allclose(decoder.step(memory, state, tokens).hidden, expected, atol=1e-12)


@pytest.mark.parametrize("reads_actor_states", [False, True])
def test_the_critic_values_every_token_and_sees_the_reference_first(reads_actor_states):
    critic = make_critic(reads_actor_states)
    predictions = torch.tensor([[3, 1, 4], [1, 6, 2], [5, 8, 2]])
    states = torch.randn(3, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    values = critic.values(critic.encode(*pad(SOURCES)), predictions, states)
    assert values.shape == (3, 3, 9)
    other = critic.values(critic.encode(*pad([[1, 2, 3, 5], [5, 7], [8]])), predictions, states)
    assert bool(((values[:, 0] - other[:, 0]).abs().max(1).values > 1e-9).all())


def test_the_critic_reads_the_state_that_produces_the_token():
    critic = make_critic(True)
    memory = critic.encode(*pad(SOURCES))
    predictions = torch.tensor([[3, 1, 4], [1, 6, 2], [5, 8, 2]])
    states = torch.zeros(3, 3, 4, dtype=torch.float64, requires_grad=True)
    values = critic.values(memory, predictions, states)
    changed = states.detach().clone()
    changed[:, 1] = 1.0
    other = critic.values(memory, predictions, changed)
    assert torch.equal(values[:, 0], other[:, 0])
    assert not torch.allclose(values[:, 1], other[:, 1])
    assert not values.requires_grad or torch.autograd.grad(values.sum(), states, allow_unused=True)[0] is None


@pytest.mark.parametrize("reads_actor_states", [False, True])
def test_a_critic_that_takes_over_the_actor_sees_in_the_reference_what_the_actor_sees_in_the_source(reads_actor_states):
    generator = torch.Generator().manual_seed(3)
    actor = RecurrentActor(SIZES, 5, 5, generator).double()
    sizes = SIZES.model_dump(include={"embedding", "hidden", "attention", "initial_range"})
    critic = RecurrentCritic(
        GruCriticSettings(**sizes, reads_actor_states=reads_actor_states), 5, 7, generator
    ).double()
    critic.initialise_from(actor)
    sources, predictions = pad([[1, 2, 3, 4], [4, 1], [2]]), torch.tensor([[3, 1, 4], [1, 4, 2], [2, 3, 2]])
    everywhere = torch.ones_like(predictions, dtype=torch.bool)
    expected, states = actor.features(actor.encode(*sources), predictions, everywhere)
    extra = states if reads_actor_states else None
    found, _ = critic.decoder.features(critic.encode(*sources), predictions, extra, everywhere)
    assert torch.allclose(found.rows, expected.rows, atol=1e-12)
    logits, values = actor.logits_of(expected), critic.decoder.read(found)
    assert torch.allclose(values.rows, 0.1 * logits.rows, atol=1e-12)


def test_the_window_encoder_is_a_mean_of_word_and_position_embeddings():
    encoder = WindowEncoder(torch.nn.Embedding(9, 4)).double()
    tokens, mask = pad([[1, 2, 3, 4, 5, 6], [7]])
    annotations = encoder(tokens, mask)
    inputs = encoder.embedding(tokens) + encoder.position(torch.arange(7))
    assert torch.allclose(annotations[0, 3], inputs[0, 1:6].mean(0), atol=1e-12)
    assert torch.allclose(annotations[0, 0], inputs[0, :3].mean(0), atol=1e-12), "at the edge, what exists"
    assert torch.allclose(annotations[1, 1], inputs[1, :2].mean(0), atol=1e-12), "padding is not part of the mean"


def test_a_tied_output_layer_shares_the_decoder_embedding():
    actor = make_actor(settings=WINDOW)
    shared = actor.decoder.embedding.weight
    assert sum(parameter is shared for parameter in actor.parameters()) == 1
    assert actor.decoder.output_layer.embedding.weight is shared
