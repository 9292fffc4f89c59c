"""Sampling and greedy search against the actor's own probabilities."""

from __future__ import annotations

import torch

from seqcritic.contracts.batch import pad
from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import greedy, sample
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.tensors import rows as all_rows

SIZES = GruActorSettings(embedding=6, hidden=7, attention=5, initial_range=None)


def make_actor() -> RecurrentActor:
    return RecurrentActor(SIZES, 5, 5, torch.Generator().manual_seed(8)).double()


def test_samples_follow_the_distribution_and_report_it():
    actor = make_actor()
    memory = all_rows.repeat(actor.encode(*pad([[1, 2, 3]])), 20_000)
    drawn = sample(actor, memory, torch.full((20_000,), 4), torch.Generator().manual_seed(0))
    frequencies, probabilities = torch.bincount(drawn.tokens[:, 0], minlength=5) / 20_000, drawn.probabilities.padded()
    assert torch.allclose(frequencies.double(), probabilities[0, 0], atol=0.015)
    logits, states = actor.score(memory, drawn.tokens)
    assert torch.allclose(torch.softmax(logits, 2)[drawn.mask], probabilities[drawn.mask], atol=1e-12)
    assert torch.allclose(states[drawn.mask], drawn.states[drawn.mask], atol=1e-12)
    entropies = torch.special.entr(probabilities).sum(2)
    assert torch.allclose(drawn.entropies, entropies, atol=1e-12)
    token_log_probabilities = torch.log_softmax(logits, 2).gather(2, drawn.tokens[:, :, None])[:, :, 0]
    assert torch.allclose(
        drawn.token_log_probabilities, torch.where(drawn.mask, token_log_probabilities, 0.0), atol=1e-12
    )
    assert not probabilities[~drawn.mask].any()
    assert len(drawn.probabilities.rows) == int(drawn.mask.sum())


def test_masks_end_with_the_end_token_or_the_cap():
    actor = make_actor()
    maximum_lengths = torch.tensor([1, 2, 5, 5, 5, 5])
    memory = all_rows.repeat(actor.encode(*pad([[1, 2, 3]])), len(maximum_lengths))
    drawn = sample(actor, memory, maximum_lengths, torch.Generator().manual_seed(3))
    for tokens, mask, maximum_length in zip(
        drawn.tokens.tolist(), drawn.mask.tolist(), maximum_lengths.tolist(), strict=True
    ):
        length = tokens.index(END) + 1 if END in tokens[:maximum_length] else maximum_length
        assert mask == [step < length for step in range(len(mask))]
        assert all(token == END for token in tokens[length:])


def test_greedy_takes_the_most_probable_token_and_does_not_depend_on_the_batch():
    actor = make_actor()
    sources = [[1, 2, 3], [4], [2, 2, 4, 1, 3, 1]]
    together = greedy(actor, *pad(sources))
    for row, source in enumerate(sources):
        tokens, mask = pad([source])
        memory = actor.encode(tokens, mask)
        state = actor.start(memory)
        expected: list[int] = []
        while len(expected) < 2 * (len(source) + 1) + 10 and (not expected or expected[-1] != END):
            token = actor.logits(state).argmax(1)
            expected.append(int(token))
            state = actor.step(memory, state, token)
        assert together[row, : len(expected)].tolist() == expected
        assert not together[row, len(expected) :].any()
