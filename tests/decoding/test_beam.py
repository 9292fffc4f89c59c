"""Beam search against brute force, against a search that keeps no state, and against greedy search."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.batch import pad
from seqcritic.data.vocabulary import END
from seqcritic.decoding.beam import Hypothesis, beam_search
from seqcritic.decoding.sampling import greedy
from seqcritic.decoding.top_k import _highest, expand_top_k
from seqcritic.errors import NonFiniteError
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.beam_decoder import BeamDecoder
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.tensors import rows as all_rows

EVERYTHING = 1_000_000  # as num_best: nothing is dropped, so no row stops before its maximum length
REWARDS = [0.0, 0.3, 1.0, 50.0, -0.4, -50.0]
SIZES = GruActorSettings(embedding=5, hidden=6, attention=5, initial_range=None)
SOURCES = [[1, 2, 3], [2], [3, 1, 1, 2, 3, 3], [1, 1]]


def make_actor(seed: int, num_tokens: int = 4, scale: float = 3.0, end_bias: float = 0.0) -> RecurrentActor:
    """Return an actor whose distributions are far from uniform and depend on the source and on every token."""
    actor = RecurrentActor(SIZES, 4, num_tokens, torch.Generator().manual_seed(seed)).double()
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.mul_(scale)
        actor.decoder.output_layer.bias[END] += end_bias
    return actor


@torch.no_grad()
def rescore(actor: RecurrentActor, source: list[int], sequences: list[tuple[int, ...]]) -> list[float]:
    """Return the log-probability of sequences of one length, each in one run over the whole of it."""
    memory, tokens = all_rows.repeat(actor.encode(*pad([source])), len(sequences)), torch.tensor(sequences)
    log_probs = torch.log_softmax(actor.score(memory, tokens)[0], dim=2)
    return log_probs.gather(2, tokens[:, :, None]).sum(dim=(1, 2)).tolist()


def make(tokens: tuple[int, ...], log_prob: float, reward: float) -> Hypothesis:
    content = [token for token in tokens if token != END]
    return Hypothesis(content, log_prob, log_prob + reward * len(content), END in tokens)


def ranked(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda h: (h.finished, h.score), reverse=True)


def enumerate_all(actor: RecurrentActor, source: list[int], reward: float, maximum_length: int) -> list[Hypothesis]:
    """Return every sequence that fits into the maximum length, best first."""
    content = range(1, actor.num_tokens)
    groups = [[(*tokens, END) for tokens in product(content, repeat=length)] for length in range(maximum_length)]
    groups.append(list(product(content, repeat=maximum_length)))
    scored = [pair for group in groups for pair in zip(group, rescore(actor, source, group), strict=True)]
    return ranked([make(tokens, score, reward) for tokens, score in scored])


def search_plainly(
    actor: RecurrentActor, source: list[int], width: int, reward: float, maximum_length: int, refill: bool = False
) -> list[Hypothesis]:
    """The same search without batch, cached state or early stopping: every prefix is scored from its beginning."""
    live: list[tuple[int, ...]] = [()]
    closed: list[Hypothesis] = []
    for length in range(1, maximum_length + 1):
        expansions = [(*prefix, token) for prefix in live for token in range(actor.num_tokens)]
        scored = zip(expansions, rescore(actor, source, expansions), strict=True)
        best_first = sorted(scored, key=lambda pair: pair[1], reverse=True)
        kept = best_first[:width]
        closed += [
            make(tokens, score, reward) for tokens, score in kept if tokens[-1] == END or length == maximum_length
        ]
        live = [tokens for tokens, _ in (best_first if refill else kept) if tokens[-1] != END][:width]
        if not live:
            break
    return sorted(closed, key=lambda h: h.score, reverse=True) if refill else ranked(closed)


def assert_same(found: list[Hypothesis], expected: list[Hypothesis], tolerance: float = 1e-9) -> None:
    assert [(h.tokens, h.finished) for h in found] == [(h.tokens, h.finished) for h in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.log_probability == pytest.approx(theirs.log_probability, abs=tolerance)
        assert ours.score == pytest.approx(theirs.score, abs=tolerance)


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize(("num_tokens", "maximum_lengths"), [(3, [6, 5, 1, 3]), (5, [3, 2, 4, 1])])
def test_a_width_that_covers_everything_is_brute_force(num_tokens: int, maximum_lengths: list[int], reward: float):
    actor = make_actor(num_tokens, num_tokens)
    width = (num_tokens - 1) ** (max(maximum_lengths) - 1) * num_tokens
    truth = [
        enumerate_all(actor, source, reward, maximum_length)
        for source, maximum_length in zip(SOURCES, maximum_lengths, strict=True)
    ]
    for num_best in (1, 4, EVERYTHING):
        found = beam_search(actor, *pad(SOURCES), width, reward, torch.tensor(maximum_lengths), num_best)
        for row, expected in zip(found, truth, strict=True):
            assert_same(row, expected[:num_best])


def test_a_large_reward_takes_the_longest_and_a_large_penalty_the_shortest():
    actor, maximum_lengths = make_actor(0), torch.full((len(SOURCES),), 5)
    longest = beam_search(actor, *pad(SOURCES), 500, 1e3, maximum_lengths)
    shortest = beam_search(actor, *pad(SOURCES), 500, -1e3, maximum_lengths)
    assert [len(row[0].tokens) for row in longest] == [4] * len(SOURCES)
    assert [row[0].tokens for row in shortest] == [[]] * len(SOURCES)


@pytest.mark.parametrize("refill", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(4))
def test_narrow_beams_equal_a_search_that_keeps_no_state(width: int, seed: int, refill: bool):
    actor, maximum_lengths = make_actor(seed), [7, 4, 6, 5]
    for reward in (0.0, 0.8, -0.3):
        for num_best in (1, EVERYTHING):
            found = beam_search(actor, *pad(SOURCES), width, reward, torch.tensor(maximum_lengths), num_best, refill)
            for row, source, maximum_length in zip(found, SOURCES, maximum_lengths, strict=True):
                assert_same(row, search_plainly(actor, source, width, reward, maximum_length, refill)[:num_best])


def test_both_searchers_refill_alike(monkeypatch: pytest.MonkeyPatch):
    maximum_lengths, actors = torch.full((len(SOURCES),), 6), [make_actor(seed, end_bias=2.0) for seed in range(8)]

    def search_all(refill: bool) -> list[list[Hypothesis]]:
        return [
            row for actor in actors for row in beam_search(actor, *pad(SOURCES), 3, 0.8, maximum_lengths, 9, refill)
        ]

    plain, own = search_all(False), search_all(True)
    monkeypatch.setattr(RecurrentActor, "searcher", Actor.searcher)
    for row, expected in zip(search_all(True), own, strict=True):
        assert_same(row, expected)
    assert sum(row[0] != other[0] for row, other in zip(plain, own, strict=True)) > 5


@pytest.mark.parametrize("reward", REWARDS)
def test_a_refilled_beam_that_covers_everything_is_brute_force(reward: float):
    actor, maximum_lengths = make_actor(1, 4), [4, 2, 3, 1]
    for row, source, maximum_length in zip(
        beam_search(actor, *pad(SOURCES), 108, reward, torch.tensor(maximum_lengths), EVERYTHING, True),
        SOURCES,
        maximum_lengths,
        strict=True,
    ):
        expected = enumerate_all(actor, source, reward, maximum_length)
        assert_same(row, sorted(expected, key=lambda h: h.score, reverse=True))


def test_width_one_is_greedy_search():
    cut, ended = 0, 0
    for seed in range(12):
        actor = make_actor(seed, end_bias=-2.0 if seed % 2 else 0.0)
        sources, mask = pad(SOURCES)
        expected = greedy(actor, sources, mask).tolist()
        for reward, refill in ((0.0, False), (1.0, False), (-1.0, False), (0.0, True)):
            found = beam_search(actor, sources, mask, 1, reward, refill=refill)
            for row, tokens, maximum_length in zip(found, expected, LengthLimits().of(mask).tolist(), strict=True):
                finished = END in tokens[:maximum_length]
                assert len(row) == 1
                assert row[0].finished == finished
                assert row[0].tokens == (tokens[: tokens.index(END)] if finished else tokens[:maximum_length])
                ended, cut = ended + finished, cut + (not finished)
    assert ended > 10
    assert cut > 10


def test_width_one_is_greedy_search_where_single_precision_can_hardly_tell_the_tokens_apart():
    actor = make_actor(0, 60, scale=0.01, end_bias=-1.0).float()
    with torch.no_grad():
        actor.decoder.output_layer.bias[1:] *= 1e-4
    sources, mask = pad(SOURCES)
    expected = greedy(actor, sources, mask).tolist()
    for (found,), tokens in zip(beam_search(actor, sources, mask, 1), expected, strict=True):
        assert found.tokens == tokens[: len(found.tokens)]
        assert len(found.tokens) > 10


def test_log_probabilities_are_those_of_the_actor():
    actor = make_actor(1, end_bias=-1.0)
    for row, source in zip(beam_search(actor, *pad(SOURCES), 4, 0.5, num_best=20), SOURCES, strict=True):
        assert {hypothesis.finished for hypothesis in row} == {True, False}
        for hypothesis in row:
            emitted = (*hypothesis.tokens, END) if hypothesis.finished else tuple(hypothesis.tokens)
            (expected,) = rescore(actor, source, [emitted])
            assert hypothesis.log_probability == pytest.approx(expected, abs=1e-9)
            assert hypothesis.score == hypothesis.log_probability + 0.5 * len(hypothesis.tokens)


@pytest.mark.parametrize("reward", [0.0, 0.7, -0.5])
def test_a_batch_of_sources_of_different_lengths_equals_one_at_a_time(reward: float):
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(0, 9, (64,), generator=generator).tolist()
    sources = [torch.randint(1, 4, (length,), generator=generator).tolist() for length in lengths]
    actor = make_actor(7, scale=6.0, end_bias=-2.0)
    together = beam_search(actor, *pad(sources), 5, reward, num_best=3)
    assert len({tuple(row[0].tokens) for row in together}) > 5
    for row, source in zip(together, sources, strict=True):
        assert_same(row, beam_search(actor, *pad([source]), 5, reward, num_best=3)[0])


def test_the_reward_never_prunes():
    for seed in range(6):
        actor = make_actor(seed)
        for width in (1, 2, 4):
            closed = []
            for reward in REWARDS:
                found = beam_search(actor, *pad(SOURCES), width, reward, num_best=EVERYTHING)
                closed.append([sorted((h.tokens, h.log_probability, h.finished) for h in row) for row in found])
            assert all(other == closed[0] for other in closed)


def test_stopping_early_changes_nothing_but_the_number_of_steps(monkeypatch: pytest.MonkeyPatch):
    steps, original = [0], BeamDecoder.step

    def count(*arguments: object) -> object:
        steps[0] += 1
        return original(*arguments)

    monkeypatch.setattr(BeamDecoder, "step", count)
    saved = dict.fromkeys(REWARDS, 0)
    for seed, reward, num_best in product(range(10), REWARDS, (1, 3)):
        actor = make_actor(seed, scale=6.0 if seed % 2 else 2.0)
        steps[0] = 0
        found = beam_search(actor, *pad(SOURCES), 3, reward, num_best=num_best)
        early, steps[0] = steps[0], 0
        full = beam_search(actor, *pad(SOURCES), 3, reward, num_best=EVERYTHING)
        for row, expected in zip(found, full, strict=True):
            assert_same(row, expected[:num_best])
        saved[reward] += steps[0] - early
    # With a positive reward the bound reaches to the maximum length, so it bites only where the reward is small.
    assert all(saved[reward] > 0 for reward in (0.3, 0.0, -0.4, -50.0))


@pytest.mark.parametrize("reward", REWARDS)
def test_no_narrower_beam_beats_one_that_covers_everything(reward: float):
    worse = 0
    for seed in range(5):
        actor, maximum_lengths = make_actor(seed), torch.full((len(SOURCES),), 4)
        best = beam_search(actor, *pad(SOURCES), 108, reward, maximum_lengths)
        for width in (1, 2, 3, 10):
            for narrow, wide in zip(
                beam_search(actor, *pad(SOURCES), width, reward, maximum_lengths), best, strict=True
            ):
                assert wide[0].finished
                assert not narrow[0].finished or narrow[0].score <= wide[0].score + 1e-12
                worse += not narrow[0].finished or narrow[0].score < wide[0].score
    assert worse > 0


def test_asking_for_more_than_there_is_returns_what_there_is_unfinished_last():
    rows = beam_search(make_actor(1, 3), *pad(SOURCES), 100, 0.0, torch.tensor([1, 2, 3, 4]), num_best=50)
    for row, maximum_length in zip(rows, (1, 2, 3, 4), strict=True):
        assert [hypothesis.finished for hypothesis in row] == [True] * (2**maximum_length - 1) + [
            False
        ] * 2**maximum_length
        assert {len(hypothesis.tokens) for hypothesis in row if not hypothesis.finished} == {maximum_length}


def test_an_unfinished_hypothesis_is_the_answer_only_where_none_finished():
    one = torch.ones(len(SOURCES), dtype=torch.int64)
    for row in beam_search(make_actor(2, end_bias=-100.0), *pad(SOURCES), 4, 0.0, one):
        assert row[0].finished  # the end token is improbable, but within a width of 4 it ends
        assert row[0].tokens == []
    for row in beam_search(make_actor(2, end_bias=-100.0), *pad(SOURCES), 3, 0.0, one):
        assert not row[0].finished
        assert len(row[0].tokens) == 1


def test_ties_go_to_the_earlier_hypothesis_and_the_lower_token():
    actor = make_actor(0, scale=0.0)  # every token has probability 1/4 everywhere
    (row,) = beam_search(actor, *pad([[1]]), 3, 0.0, torch.tensor([3]), num_best=EVERYTHING)
    closed = [(hypothesis.tokens, hypothesis.finished) for hypothesis in row]
    # Kept: end, 1, 2; then 1 end, 1 1, 1 2; then 1 1 end, 1 1 1, 1 1 2.
    assert closed == [([], True), ([1], True), ([1, 1], True), ([1, 1, 1], False), ([1, 1, 2], False)]


def test_the_highest_values_are_those_of_a_stable_sort():
    values = torch.randint(0, 6, (300, 9), generator=torch.Generator().manual_seed(0)).double()
    for rows in (values, values + torch.rand(values.shape, generator=torch.Generator().manual_seed(1)) * 3):
        for count in (1, 4, 9, 12):
            for row in rows.split(1):  # one at a time, so that both ways through the function are taken
                expected = row.sort(dim=1, descending=True, stable=True).indices
                assert torch.equal(_highest(row, count), expected[:, :count])


def test_sums_of_single_precision_keep_hypotheses_apart():
    log_probs = torch.tensor([[-1000.0, -1000.0 + 1e-6]], dtype=torch.float64)
    best, parents, tokens = expand_top_k(torch.zeros(2, 3), log_probs, 4)
    assert parents.tolist() == [[1, 1, 1, 0]]
    assert tokens.tolist() == [[0, 1, 2, 0]]
    assert best[0, 0] - best[0, 3] == pytest.approx(1e-6, rel=1e-3)


def test_tokens_of_probability_zero_are_never_emitted():
    actor = make_actor(4)
    with torch.no_grad():
        actor.decoder.output_layer.bias[2] = -torch.inf
    for row in beam_search(actor, *pad(SOURCES), 200, 0.1, torch.full((4,), 4), num_best=EVERYTHING):
        assert len(row) == 1 + 2 + 4 + 8 + 16
        assert all(2 not in hypothesis.tokens for hypothesis in row)


def test_faults_are_refused():
    sources, mask = pad([[1, 2]])
    for wrong in ({"width": 0}, {"width": 2, "num_best": 0}, {"width": 2, "maximum_lengths": torch.tensor([0])}):
        with pytest.raises(ValueError, match="at least 1"):
            beam_search(make_actor(0), sources, mask, **wrong)
    with pytest.raises(NonFiniteError):
        beam_search(make_actor(0, end_bias=float("nan")), sources, mask, 2)
