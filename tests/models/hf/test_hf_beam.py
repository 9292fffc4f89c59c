"""Beam search of Hugging Face models against the library's own, on sources of many lengths."""

from __future__ import annotations

import pytest
import torch

from seqcritic.decoding.beam import beam_search
from seqcritic.decoding.sampling import decode_greedily
from seqcritic.models.hf.actor import HuggingFaceActor
from seqcritic.tensors import rows
from tiny_models import END, NUM_TOKENS, PADDING, make_model

NUM_SOURCES, LONGEST, CAP = 200, 9, 12


def make_actor(family: str) -> HuggingFaceActor:
    """Return an actor whose answers depend on the source; some end early, some meet the cap."""
    model, generator = make_model(family), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        # The end token says what several others say together, so that it is likely wherever they are.
        embedding = model.get_output_embeddings().weight
        embedding[END] = 0.8 * embedding[5:9].sum(dim=0)
    return HuggingFaceActor(model)


def make_sources() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, LONGEST, (NUM_SOURCES,), generator=generator)
    mask = torch.arange(LONGEST) <= lengths[:, None]
    tokens = torch.randint(4, NUM_TOKENS, mask.shape, generator=generator)
    tokens[torch.arange(NUM_SOURCES), lengths] = END
    return tokens.masked_fill(~mask, PADDING), mask


def generated(actor: HuggingFaceActor, width: int) -> tuple[list[list[list[int]]], torch.Tensor]:
    """Return the `width` answers of the library to each source, up to and with their ends, and their scores."""
    sources, mask = make_sources()
    if not actor.crosses:  # prompts are padded on the left
        own = [row[row != PADDING] for row in sources]
        sources = torch.stack([torch.nn.functional.pad(row, (LONGEST - len(row), 0), value=PADDING) for row in own])
        mask = sources != PADDING
    found = actor.model.generate(
        input_ids=sources,
        attention_mask=mask.long(),
        num_beams=width,
        num_return_sequences=width,
        length_penalty=0.0,
        early_stopping="never",
        max_new_tokens=CAP,
        do_sample=False,
        suppress_tokens=[PADDING],  # as the actor never says it, and with what is left summing to 1
        renormalize_logits=True,
        return_dict_in_generate=True,
        output_scores=True,
    )
    first = len(actor.prefix) if actor.crosses else LONGEST
    rows = found.sequences[:, first:].tolist()
    answers = [row[: row.index(END) + 1] if END in row else row[:CAP] for row in rows]
    return [answers[at : at + width] for at in range(0, len(answers), width)], found.sequences_scores.view(-1, width)


@pytest.mark.parametrize("width", [2, 5])
@pytest.mark.parametrize("family", ["t5", "bart", "gpt2"])
def test_refilled_beams_are_those_of_generate(family: str, width: int):
    actor = make_actor(family)
    expected, scores = generated(actor, width)
    maximum_lengths = torch.full((NUM_SOURCES,), CAP)
    found = beam_search(actor, *make_sources(), width, maximum_lengths=maximum_lengths, num_best=width, refill=True)
    plain = beam_search(actor, *make_sources(), width, maximum_lengths=maximum_lengths, num_best=width)
    ended = differing = compared = 0
    for row, theirs, their_scores, other in zip(found, expected, scores, plain, strict=True):
        ours = [[*each.tokens, END] if each.finished else each.tokens for each in row]
        assert ours[0] == theirs[0]
        assert [each.score for each in row] == pytest.approx(their_scores.tolist(), abs=1e-3)
        if bool((their_scores[:-1] - their_scores[1:] > 1e-4).all()):  # the library sums in single precision
            assert ours == theirs
            compared += 1
        ended += row[0].finished
        differing += row != other
    # Neither all nor none: the sources tell of ends, of maximum lengths and of positions that were filled again.
    assert 20 < ended < NUM_SOURCES - 20
    assert differing > (10 if width == 5 else 0)
    assert compared > 0.9 * NUM_SOURCES


@pytest.mark.parametrize("family", ["t5", "bart", "gpt2"])
def test_width_one_is_greedy_search(family: str):
    actor, (sources, mask) = make_actor(family), make_sources()
    maximum_lengths = torch.full((NUM_SOURCES,), CAP)
    greedy = decode_greedily(actor, actor.encode(sources, mask), maximum_lengths).tolist()
    for [best], tokens in zip(
        beam_search(actor, sources, mask, 1, maximum_lengths=maximum_lengths, refill=True), greedy, strict=True
    ):
        assert best.tokens == (tokens[: tokens.index(END)] if best.finished else tokens)


@pytest.mark.parametrize("family", ["t5", "bart", "gpt2"])
def test_a_beam_that_covers_everything_is_brute_force(family: str):
    actor, (sources, mask) = make_actor(family), make_sources()
    sources, mask, cap = sources[:2], mask[:2], 2
    found = beam_search(
        actor, sources, mask, NUM_TOKENS**2, maximum_lengths=torch.full((2,), cap), num_best=20, refill=True
    )
    others = [token for token in range(NUM_TOKENS) if token not in (END, PADDING)]
    every = [[END, PADDING]] + [[first, second] for first in others for second in [*others, END]]
    tokens = torch.tensor(every)
    counted = actor.special.up_to_end(tokens)
    for row in range(2):
        one = slice(row, row + 1)
        with torch.no_grad():
            memory = rows.repeat(actor.encode(sources[one], mask[one]), len(every))
            log_probs = torch.log_softmax(actor.score(memory, tokens)[0], dim=2)
        scores = (log_probs.gather(2, tokens[:, :, None])[:, :, 0] * counted).sum(dim=1)
        best = scores.sort(descending=True)
        assert [each.score for each in found[row]] == pytest.approx(best.values[:20].tolist(), abs=1e-4)
        first = [token for token in every[int(best.indices[0])] if token not in (END, PADDING)]
        assert found[row][0].tokens == first
