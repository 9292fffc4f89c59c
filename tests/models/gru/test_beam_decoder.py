"""BeamDecoder that share their memory against the decoder's own steps, where each has a memory of its own."""

from __future__ import annotations

import pytest
import torch

from seqcritic.contracts.batch import pad
from seqcritic.models.gru import beam_decoder
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.beam_decoder import BeamDecoder, Keys
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.tensors import rows as all_rows

SOURCES = [[1, 2, 3], [2], [3, 1, 1, 2, 3, 3], [1, 1]]
WIDTH = 3


@pytest.mark.parametrize("encoder", ["bidirectional", "window"])
@pytest.mark.parametrize("num_tokens", [5, 400])  # with and without a table of the tokens' gates
@pytest.mark.parametrize("kind", ["own matrix", "lifted", "tied", "projected"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@torch.no_grad()
def test_steps_and_logits_are_those_of_the_decoder(
    kind: str, num_tokens: int, encoder: str, dropout: float, monkeypatch: pytest.MonkeyPatch
):
    if kind == "own matrix":
        monkeypatch.setattr(beam_decoder, "LIFTED", 0)
    settings = GruActorSettings(
        embedding=5,
        hidden=6,
        attention=4,
        encoder=encoder,
        initial_range=None,
        dropout=dropout,
        tied=kind == "tied",
        output_width=3 if kind == "projected" else None,
    )
    generator = torch.Generator().manual_seed(0)
    actor = RecurrentActor(settings, 4, num_tokens, generator).double()
    memory = actor.encode(*pad(SOURCES), actor.draw_masks(len(SOURCES), torch.Generator().manual_seed(3)))
    search, state = BeamDecoder(actor.decoder, memory, WIDTH), actor.start(memory)
    live = search.start()
    assert (search.lifted is not None) == (kind == "lifted" and not dropout)
    assert (search.token_gates is not None) == (num_tokens == 5 and not dropout)
    rows, width = torch.arange(len(SOURCES)), 1
    for step in range(6):
        assert torch.allclose(search.logits(live), actor.logits(state), rtol=0, atol=1e-12)
        if step == 2:
            going = torch.tensor([True, False, True, True])
            rows = rows[going]
            search.keep(going)
            parents = torch.randint(width, (len(rows), WIDTH), generator=generator) + going.nonzero() * width
        else:
            parents = torch.randint(width, (len(rows), WIDTH), generator=generator)
            parents += torch.arange(len(rows))[:, None] * width
        tokens, width = torch.randint(num_tokens, (len(rows) * WIDTH,), generator=generator), WIDTH
        live = search.step(live, parents.flatten(), tokens)
        state = actor.step(
            all_rows.select(memory, rows.repeat_interleave(WIDTH)), all_rows.select(state, parents.flatten()), tokens
        )
    assert live.hidden.std() > 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.1, 8.0, 40.0, 600.0])
def test_matching_is_the_logistic_function_however_large_its_arguments(scale: float, dtype: torch.dtype):
    generator = torch.Generator().manual_seed(1)
    keys = scale * (2 * torch.rand(3, 5, 4, generator=generator, dtype=dtype) - 1)
    queries = scale * (2 * torch.rand(2, 6, 4, generator=generator, dtype=dtype) - 1)
    rows = torch.tensor([2, 0])
    found = Keys(keys).select(rows).match(queries)
    expected = torch.sigmoid(keys[rows][:, None] + queries[:, :, None])
    assert torch.allclose(found, expected, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-30)
