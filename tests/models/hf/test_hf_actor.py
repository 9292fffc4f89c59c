"""Hugging Face models behind the actor's contract: every family by the same checks."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import GenerationMixin

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.decoding.beam import beam_search
from seqcritic.decoding.sampling import decode_greedily, sample
from seqcritic.models.baseline import LinearBaseline
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruCriticSettings
from seqcritic.models.hf.actor import HuggingFaceActor
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.methods import method_section
from seqcritic.tensors import rows
from tiny_models import END, FAMILIES, NUM_TOKENS, PADDING, make_model

every_family = pytest.mark.parametrize("family", list(FAMILIES))
SOURCES = torch.tensor([[5, 9, 7, 12, END], [8, 6, END, PADDING, PADDING], [11, 4, 9, END, PADDING]])
MASK = SOURCES != PADDING
HEARD = torch.randn(3, 10, 6, generator=torch.Generator().manual_seed(4))  # audio features [B, S, F]
SEEN = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(5))  # pixels
TOKENS = torch.tensor([[3, 10, 4, 12], [14, 12, 22, 11], [4, 14, 2, 13]])


def make_actor(family: str, dropout: float = 0.0) -> HuggingFaceActor:
    return HuggingFaceActor(make_model(family, dropout))


def sources_of(family: str) -> torch.Tensor:
    """What the models of a family read."""
    return {"whisper": HEARD, "image-to-text": SEEN}.get(family, SOURCES)


def given_to(actor: HuggingFaceActor, family: str) -> dict[str, torch.Tensor]:
    """The same as the model itself takes it."""
    if family == "whisper":
        return {"input_features": HEARD.transpose(1, 2)}
    if family == "image-to-text":
        return {"pixel_values": SEEN}
    return {"input_ids": SOURCES, "attention_mask": MASK.long()}


@every_family
def test_stepping_equals_scoring(family):
    actor = make_actor(family)
    with torch.no_grad():
        memory = actor.encode(sources_of(family), MASK)
        logits, views = actor.score(memory, TOKENS)
        tolerance = 1e-5 + 1e-6 * float(logits.abs().masked_fill(logits < -1e8, 0).max())  # T5 v1.1 has logits of 104
        state = actor.start(memory)
        for step in range(TOKENS.shape[1]):
            assert torch.allclose(actor.logits(state), logits[:, step], atol=tolerance)
            assert torch.allclose(actor.view(state), views[:, step], atol=1e-5)
            before = [tensor.clone() for pair in state.cache for tensor in pair]
            following = actor.step(memory, state, TOKENS[:, step])
            assert all(torch.equal(*pair) for pair in zip(before, (t for p in state.cache for t in p), strict=True))
            state = following
    assert logits.shape == (3, 4, NUM_TOKENS)


@every_family
def test_the_model_itself_says_the_same(family):
    actor = make_actor(family)
    with torch.no_grad():
        logits, _ = actor.score(actor.encode(sources_of(family), MASK), TOKENS)
        if actor.crosses:
            given = torch.cat([torch.tensor([actor.prefix]).expand(3, -1), TOKENS[:, :-1]], dim=1)
            own = actor.model(**given_to(actor, family), decoder_input_ids=given).logits
            expected = [own[row, len(actor.prefix) - 1 :] for row in range(3)]
        else:
            expected = []
            for row in range(3):
                prompt = SOURCES[row][MASK[row]]
                own = actor.model(input_ids=torch.cat([prompt, TOKENS[row, :-1]])[None]).logits[0]
                expected.append(own[len(prompt) - 1 :])
    for row in range(3):
        usual = (torch.arange(NUM_TOKENS) != PADDING) & (actor._never_first == 0)
        assert torch.allclose(logits[row][:, usual], expected[row][:, usual], atol=1e-4)
    assert bool((logits[:, :, PADDING] < -1e8).all()), "padding is never drawn"


@every_family
def test_select_and_repeat_commute_with_step(family):
    actor = make_actor(family)
    with torch.no_grad():
        memory = actor.encode(sources_of(family), MASK)
        state = actor.step(memory, actor.start(memory), TOKENS[:, 0])
        after = actor.logits(actor.step(memory, state, TOKENS[:, 1]))
        order = torch.tensor([2, 0, 2])
        chosen = actor.step(rows.select(memory, order), rows.select(state, order), TOKENS[order, 1])
        assert torch.allclose(actor.logits(chosen), after[order], atol=1e-4)
        many = actor.step(rows.repeat(memory, 2), rows.repeat(state, 2), TOKENS[:, 1].repeat_interleave(2))
        assert torch.allclose(actor.logits(many), after.repeat_interleave(2, dim=0), atol=1e-4)


@every_family
def test_greedy_search_is_that_of_generate(family):
    actor = make_actor(family)
    found = decode_greedily(actor, actor.encode(sources_of(family), MASK), torch.full((3,), 9))
    if actor.crosses:
        # The plain one: Whisper's own cuts its answers into pieces of audio, and takes the ends off.
        expected = GenerationMixin.generate(
            actor.model,
            **given_to(actor, family),
            max_new_tokens=9,
            num_beams=1,
            do_sample=False,
            suppress_tokens=[PADDING],
        )
        expected = [row[len(actor.prefix) :] for row in expected]
    else:
        expected = [
            actor.model.generate(
                input_ids=SOURCES[row][MASK[row]][None], max_new_tokens=9, do_sample=False, suppress_tokens=[PADDING]
            )[0, int(MASK[row].sum()) :]
            for row in range(3)
        ]
    for row in range(3):
        length = int(actor.special.up_to_end(found[row : row + 1])[0].sum())
        assert found[row, :length].tolist() == expected[row][:length].tolist()
    beams = beam_search(actor, sources_of(family), MASK, 1, maximum_lengths=torch.full((3,), 9))
    for row, [best] in enumerate(beams):
        assert best.tokens == found[row, : len(best.tokens)].tolist()


def test_tokens_that_no_answer_begins_with_are_drawn_later_only():
    actor = make_actor("whisper")
    assert actor.model.generation_config.begin_suppress_tokens == [9]
    with torch.no_grad():
        logits = actor.score(actor.encode(HEARD, MASK), TOKENS)[0]
        stepped = actor.logits(actor.start(actor.encode(HEARD, MASK)))
    assert bool((logits[:, 0, 9] < -1e8).all())
    assert bool((stepped[:, 9] < -1e8).all())
    assert bool((logits[:, 1:, 9] > -1e8).all())


@every_family
def test_dropout_is_seeded_off_in_drawing_and_repeats(family):
    actor = make_actor(family, dropout=0.3)
    generator = torch.Generator().manual_seed(1)
    seed = actor.draw_masks(3, generator)
    if seed is None:
        pytest.skip("a family without dropout")
    before = torch.random.get_rng_state()
    one, other = (actor.score(actor.encode(sources_of(family), MASK, seed), TOKENS)[0] for _ in range(2))
    assert torch.equal(one, other), "a resumed run drops the same units"
    assert torch.equal(before, torch.random.get_rng_state()), "the global generator is left alone"
    plain = actor.score(actor.encode(sources_of(family), MASK), TOKENS)[0]
    assert not torch.allclose(one, plain, atol=1e-2)
    with torch.no_grad():
        memory = actor.encode(sources_of(family), MASK)
        drawn = sample(actor, memory, torch.full((3,), 6), generator)
        scored = torch.log_softmax(actor.score(memory, drawn.tokens)[0], 2).gather(2, drawn.tokens[:, :, None])[:, :, 0]
    assert torch.allclose(drawn.token_log_probabilities[drawn.mask], scored[drawn.mask], atol=1e-4)
    assert not actor.model.training


LABELS = ["actor-critic+likelihood", "reinforce-critic", "minimum-risk", "mixer", "raml"]
FAMILIES_AND_LABELS = [
    *((family, label) for family in FAMILIES for label in LABELS),
    *(("marian", name) for name in registered_methods() if name not in LABELS),  # one family by all others too
]


@pytest.mark.parametrize(("family", "label"), FAMILIES_AND_LABELS)
def test_methods_train_it(family, label):
    name, mixed, _ = label.partition("+")
    actor = make_actor(family, dropout=0.1)
    settings = method_section()(name=name, likelihood_weight=0.1 if mixed else 0.0, gamma_theta=1.0)
    networks, generator = Networks(actor), torch.Generator().manual_seed(2)
    kind = registered_methods()[name]
    needed = {spec.name for spec in kind.needs}
    if "critic" in needed:
        sizes = GruCriticSettings(embedding=6, hidden=6, attention=6)
        networks.critic = RecurrentCritic(sizes, NUM_TOKENS, actor.state_size, generator)
        networks.target_critic = copy.deepcopy(networks.critic).requires_grad_(False)
    if "baseline" in needed:
        networks.baseline = LinearBaseline(actor.state_size)
    references = torch.tensor([[9, 4, END], [12, END, PADDING], [6, 7, END]])
    batch = Batch(sources_of(family), MASK, references, references != PADDING)
    method = kind(settings, EditDistanceScore(normalise=False), True)
    method(networks, batch, generator, 0.5).loss.backward()
    # What stands under the model's own head and body has a gradient; unused parts (global attention) have none.
    moved = [parameter for parameter in actor.model.parameters() if parameter.grad is not None]
    assert len(moved) >= 0.8 * len(list(actor.model.parameters()))
    assert all(bool(torch.isfinite(parameter.grad).all()) for parameter in moved)
    assert sum(float(parameter.grad.abs().sum()) for parameter in moved) > 0
