"""Steps of our own against those of the library, family by family: states, logits, beams."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from seqcritic.contracts.actor import Actor
from seqcritic.decoding.beam import beam_search
from seqcritic.models.hf import decoder
from seqcritic.models.hf.actor import HuggingFaceActor
from seqcritic.models.hf.architectures import DECODERS, read_decoder, read_head
from seqcritic.models.hf.library_calls import run_head
from seqcritic.models.hf.searcher import STEPS
from seqcritic.tensors import rows
from tiny_models import END, FAMILIES, NUM_TOKENS, PADDING, make_model

OWN = ["bart", "mbart", "marian", "pegasus", "m2m100", "whisper", "t5", "t5-1.1"]
own_families = pytest.mark.parametrize("family", OWN)
NUM_STEPS = 9
SOURCES = torch.tensor([[5, 9, 7, 12, END], [8, 6, END, PADDING, PADDING], [11, 4, 9, END, PADDING]])
MASK = SOURCES != PADDING
HEARD = torch.randn(3, 10, 6, generator=torch.Generator().manual_seed(4))


def make_actor(family: str, lora: bool = False) -> HuggingFaceActor:
    adapters = {"rank": 2, "targets": ["q", "v", "wo"] if family.startswith("t5") else ["q_proj", "v_proj", "fc2"]}
    actor = HuggingFaceActor(make_model(family), lora=adapters if lora else None)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():  # nothing is left at 0 or 1: not the adapters, not biases and norms
        for parameter in actor.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        if "final_logits_bias" in dict(actor.model.named_buffers()):
            actor.model.final_logits_bias.normal_(generator=generator)
    return actor


def sources_of(family: str) -> torch.Tensor:
    return HEARD if family == "whisper" else SOURCES


@pytest.mark.parametrize(("lora", "onednn"), [(False, False), (True, False), (False, True)])
@own_families
def test_a_step_is_that_of_the_library(family: str, lora: bool, onednn: bool, monkeypatch: pytest.MonkeyPatch):
    if onednn:
        monkeypatch.setattr(decoder, "LARGE", 0)
        monkeypatch.setattr(decoder, "mkl_leaves_half_unused", torch.backends.mkldnn.is_available)
    actor = make_actor(family, lora)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        memory = actor.encode(sources_of(family), MASK)
        own = actor.start(memory)
        assert own.decoder.content is not None
        for _ in range(NUM_STEPS):
            tokens = torch.randint(4, 20, (3,), generator=generator)
            with torch.enable_grad():  # where something may be learnt, the library steps
                expected = rows.detach(actor.step(memory, own, tokens))
                expected_logits = actor.logits(expected).detach()
            own = actor.step(memory, own, tokens)
            torch.testing.assert_close(own[:3], expected[:3], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(actor.logits(own), expected_logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_head_says_what_its_model_says(family: str):
    actor = make_actor(family)
    headed, body = actor._headed[0], actor._body[0]
    head = read_head(headed)
    if head is None:
        pytest.skip("the library runs it")
    hidden = torch.randn(5, actor.state_size, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours = nn.functional.linear(hidden * head.scale, head.weight, head.bias)
        torch.testing.assert_close(ours, run_head(headed, body, hidden), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("refill", [False, True])
@own_families
def test_hypotheses_that_never_move_are_those_that_do(family: str, refill: bool, monkeypatch: pytest.MonkeyPatch):
    actor = make_actor(family)
    lengths = torch.tensor([NUM_STEPS + 8, NUM_STEPS, 4])  # examples leave one by one

    def search() -> list[list[tuple[list[int], float]]]:
        found = beam_search(actor, sources_of(family), MASK, 4, maximum_lengths=lengths, num_best=4, refill=refill)
        return [[(each.tokens, pytest.approx(each.score, abs=1e-4)) for each in row] for row in found]

    ours = search()
    monkeypatch.setattr(HuggingFaceActor, "searcher", Actor.searcher)
    monkeypatch.setattr(HuggingFaceActor, "_decoder_of", lambda self, memory: None)
    expected = beam_search(actor, sources_of(family), MASK, 4, maximum_lengths=lengths, num_best=4, refill=refill)
    assert [[(each.tokens, each.score) for each in row] for row in expected] == ours
    assert max(len(each.tokens) for row in expected for each in row) > STEPS


def test_weights_are_read_anew_for_every_memory():
    actor = make_actor("marian")
    tokens = torch.tensor([5, 6, 7])
    with torch.no_grad():
        for _ in range(2):
            memory = actor.encode(SOURCES, MASK)
            with torch.enable_grad():
                expected = actor.step(memory, actor.start(memory), tokens)
            torch.testing.assert_close(actor.step(memory, actor.start(memory), tokens).hidden, expected.hidden)
            for parameter in actor.parameters():
                parameter.mul_(1.5)


def test_what_is_not_the_usual_module_is_run_by_the_library():
    model = make_model("marian")
    assert read_decoder(model, torch.zeros(NUM_TOKENS)) is not None

    class Rounded(nn.Linear):
        """A layer that computes otherwise than it looks."""

    layer = model.get_decoder().layers[1]
    layer.fc1 = Rounded(16, 32)
    assert read_decoder(model, torch.zeros(NUM_TOKENS)) is None
    assert read_decoder(make_model("gpt2"), torch.zeros(NUM_TOKENS)) is None
    assert set(DECODERS) == {"bart", "mbart", "marian", "pegasus", "m2m_100", "whisper", "t5", "mt5"}
