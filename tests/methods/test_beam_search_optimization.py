"""Beam-search optimisation: losses and gradients computed by hand, on an actor whose probabilities are a table."""

from __future__ import annotations

from math import log

import pytest
import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.decoding.beam_violations import Violations, find_violations
from seqcritic.methods.beam_search_optimization import (
    BeamSearchOptimization,
    BeamSearchOptimizationSettings,
    beam_width,
    violation_costs,
)
from seqcritic.scores.bleu import BleuScore
from seqcritic.tensors import rows as all_rows
from seqcritic.testing.worlds import gradients, largest_difference
from test_gradients import SCORE, make_networks, make_settings
from test_gradients import make_batch as make_larger_batch

NUM_TOKENS = 3
REFERENCE = (1, 2, END)
EVEN = (1 / 3, 1 / 3, 1 / 3)
SPECIAL = SpecialTokens(end=(END,), padding=END)


class TableActor(Actor):
    """Next-token probabilities given for single prefixes, of tokens END, 1 and 2; the others are even."""

    num_tokens, state_size, special = NUM_TOKENS, 1, SPECIAL

    def __init__(self, probabilities: dict[tuple[int, ...], tuple[float, ...]]) -> None:
        super().__init__()
        table = torch.tensor([EVEN] * 13, dtype=torch.float64)
        for prefix, row in probabilities.items():
            table[self.number(prefix)] = torch.tensor(row, dtype=torch.float64)
        self.table = nn.Parameter(table.log())

    @staticmethod
    def number(prefix: tuple[int, ...]) -> int:
        """Return the place of a prefix in the tree of all."""
        place = 0
        for token in prefix:
            place = place * NUM_TOKENS + token + 1
        return place

    def encode(self, sources: Tensor, mask: Tensor, masks: None = None) -> Tensor:
        return sources

    def start(self, memory: Tensor) -> Tensor:
        return torch.zeros(len(memory), dtype=torch.int64)

    def step(self, memory: Tensor, state: Tensor, tokens: Tensor) -> Tensor:
        return state * NUM_TOKENS + tokens + 1

    def logits(self, state: Tensor) -> Tensor:
        return self.table[state.clamp(max=12)]

    def view(self, state: Tensor) -> Tensor:
        return state[:, None].double()

    def gradient(self, loss: Tensor) -> dict[tuple[int, ...], list[float]]:
        """Return the gradient for the logits after the prefixes that have one."""
        (found,) = gradients(loss, self)
        prefixes = [(), *((a,) for a in range(3)), *((a, b) for a in range(3) for b in range(3))]
        rows = {prefix: found[self.number(prefix)] for prefix in prefixes}
        return {prefix: row.tolist() for prefix, row in rows.items() if float(row.abs().max()) > 1e-12}


def one_pair() -> Batch:
    everywhere = torch.ones(1, 3, dtype=torch.bool)
    return Batch(torch.tensor([[2, 1, END]]), everywhere, torch.tensor([REFERENCE]), everywhere)


def optimise(actor: TableActor, width: int = 3, weight: float = 0.0):
    own = {"initial_width": width, "width": width}
    settings = make_settings("beam-search-optimization", beam_search_optimization=own, likelihood_weight=weight)
    method = BeamSearchOptimization(settings.method, SCORE, True)
    return method(Networks(actor), one_pair(), torch.Generator(), 0.0)


def test_no_loss_where_the_reference_keeps_its_place_with_the_margin():
    actor = TableActor({(): (0.1, 0.8, 0.1), (1,): (0.01, 0.19, 0.8), (1, 2): (0.8, 0.1, 0.1)})
    outcome = optimise(actor)
    assert outcome.loss.item() == 0
    assert outcome.measurements["violations"].item() == 0
    assert actor.gradient(outcome.loss) == {}
    assert optimise(actor, weight=0.5).loss.item() == pytest.approx(-0.5 * 3 * log(0.8))
    assert optimise(actor, width=2).loss.item() == 0, "nor against the best incorrect one"


def test_two_violations_with_a_restart_between_them_by_hand():
    """The second rival of two tokens is (1, END), as probable as the reference; then 1 follows instead of END."""
    actor = TableActor({(): (0.02, 0.9, 0.08), (1,): (0.2, 0.6, 0.2), (2,): (0.05, 0.15, 0.8), (1, 2): (0.5, 0.3, 0.2)})
    outcome = optimise(actor)
    # Of (1, 2), (1) has one token too few: Δ = 1/2, and a lone end token scores nothing: Δ = 1.
    assert outcome.loss.item() == pytest.approx(0.5 * 1 + (1 - log(0.5) + log(0.3)), abs=1e-12)
    assert outcome.measurements["violations"].item() == 2
    assert outcome.measurements["violation_cost"].item() == pytest.approx(0.75)
    found = actor.gradient(outcome.loss)
    assert set(found) == {(1,), (1, 2)}
    assert found[1,] == pytest.approx([0.5, 0.0, -0.5], abs=1e-12)
    assert found[1, 2] == pytest.approx([-1.0, 1.0, 0.0], abs=1e-12)


def test_two_places_are_for_greedy_search():
    """The reference must be first by the margin: of two tokens (1, 1) is three times as probable."""
    actor = TableActor({(): (0.02, 0.9, 0.08), (1,): (0.2, 0.6, 0.2), (1, 2): (0.5, 0.3, 0.2)})
    outcome = optimise(actor, width=2)
    assert outcome.loss.item() == pytest.approx(0.5 * (1 + log(3)) + (1 - log(0.5) + log(0.3)), abs=1e-12)
    found = actor.gradient(outcome.loss)
    assert set(found) == {(1,), (1, 2)}
    assert found[1,] == pytest.approx([0.0, 0.5, -0.5], abs=1e-12)


def test_a_rival_that_left_the_reference_at_the_first_token_by_hand():
    """(2, 2, END) stays in the beam beside the reference and is too near to it at the end."""
    tables = {(): (0.05, 0.7, 0.25), (1,): (0.1, 0.1, 0.8), (2,): (0.02, 0.03, 0.95)}
    actor = TableActor(tables | {(1, 2): (0.5, 0.25, 0.25), (2, 2): (0.98, 0.01, 0.01)})
    outcome = optimise(actor)
    ours, theirs = 0.7 * 0.8 * 0.5, 0.25 * 0.95 * 0.98
    assert outcome.loss.item() == pytest.approx(0.5 * (1 - log(ours) + log(theirs)), abs=1e-12)
    found = actor.gradient(outcome.loss)
    assert found[()] == pytest.approx([0.0, -0.5, 0.5], abs=1e-12)
    assert found[1,] == pytest.approx([0.05, 0.05, -0.1], abs=1e-12)
    assert found[1, 2] == pytest.approx([-0.25, 0.125, 0.125], abs=1e-12)
    assert found[2,] == pytest.approx([-0.01, -0.015, 0.025], abs=1e-12)
    assert found[2, 2] == pytest.approx([0.01, -0.005, -0.005], abs=1e-12)


def test_a_rival_that_ended_early_keeps_its_place():
    """(END) and (1) are the first step's incorrect ones; (END) is still second best at the end and nearest to us."""
    actor = TableActor({(): (0.3, 0.69, 0.01), (1,): (0.005, 0.005, 0.99), (1, 2): (0.99, 0.005, 0.005)})
    outcome = optimise(actor)
    ours = 0.69 * 0.99 * 0.99
    assert outcome.measurements["violations"].item() == 1
    assert outcome.loss.item() == pytest.approx(1 - log(ours) + log(0.3), abs=1e-12)


def test_costs_are_of_the_parts_after_the_restart():
    references = torch.tensor([[1, 2, 3, 4, END, END], [5, 5, 5, 5, 5, END]])
    found = Violations(
        rows=torch.tensor([0, 0, 1, 1]),
        starts=torch.tensor([1, 4, 0, 2]),
        positions=torch.tensor([3, 4, 3, 5]),
        tokens=torch.tensor([[1, 2, 9, 4, 0, 0], [1, 2, 3, 4, 9, 0], [5, 0, 0, 0, 0, 0], [5, 5, 5, 6, 0, 0]]),
    )
    # 2 9 4 for 2 3 4; 9 for the end; 5 for 5 5 5 5; 5 6 for 5 5 5.
    expected = [1 / 3, 1, 3 / 4, 2 / 3]
    for score in (SCORE, type(SCORE)(normalise=True)):
        assert violation_costs(found, references, score, SPECIAL).tolist() == pytest.approx(expected)
    bleu = violation_costs(found, references, BleuScore(None), SPECIAL)
    assert float(bleu[0]) == pytest.approx(1 - (3 / 4 * 1 / 3 * 1 / 2) ** 0.25, abs=1e-6)
    assert bleu[1] == 1


def test_a_batch_is_the_mean_of_its_examples():
    settings = make_settings("beam-search-optimization")
    actor = make_networks(settings).actor
    batch = make_larger_batch(6)
    lengths = torch.tensor([4, 3, 4, 2, 1, 4])
    mask = torch.arange(4) < lengths[:, None]
    references = torch.where(torch.arange(4) < lengths[:, None] - 1, batch.references, END)
    batch = Batch(batch.sources, batch.source_mask, references, mask)
    method = BeamSearchOptimization(settings.method, SCORE, True)
    for progress in (0.0, 0.5, 0.99):
        whole = method(Networks(actor), batch, torch.Generator(), progress)
        assert whole.measurements["violations"].item() > 0.5
        total = [torch.zeros_like(parameter) for parameter in actor.parameters()]
        losses = []
        for row in range(6):
            alone = Batch(
                batch.sources[row : row + 1],
                batch.source_mask[row : row + 1],
                references[row : row + 1, : lengths[row]],
                mask[row : row + 1, : lengths[row]],
            )
            outcome = method(Networks(actor), alone, torch.Generator(), progress)
            losses.append(outcome.loss.item())
            for sum_so_far, gradient in zip(total, gradients(outcome.loss, actor), strict=True):
                sum_so_far += gradient / 6
        assert whole.loss.item() == pytest.approx(sum(losses) / 6, abs=1e-10)
        assert largest_difference(gradients(whole.loss, actor), total) < 1e-10


def test_the_rivals_margins_are_those_of_the_search():
    """Every violation found without a graph violates the margin by the probabilities of the whole sequences too."""
    actor = make_networks(make_settings("beam-search-optimization")).actor
    batch = make_larger_batch(8)
    memory = actor.encode(batch.sources, batch.source_mask)
    found = find_violations(actor, memory, batch.references, batch.reference_mask, 3, 1.0)
    assert len(found.rows) > 4
    for row, start, place, tokens in zip(*(field.tolist() for field in found), strict=True):
        rival, ours = torch.tensor(tokens), batch.references[row]
        assert torch.equal(rival[:start], ours[:start])
        assert not torch.equal(rival[: place + 1], ours[: place + 1])

        def log_probability(sequence: Tensor, row: int = row, place: int = place) -> float:
            logits, _ = actor.score(all_rows.select(memory, torch.tensor([row])), sequence[None])
            steps = torch.log_softmax(logits[0], 1).gather(1, sequence[:, None])[: place + 1, 0]
            ended = (sequence[: place + 1] == END).cumsum(0) - (sequence[: place + 1] == END).long() > 0
            return steps[~ended].sum().item()

        assert log_probability(ours) < log_probability(rival) + 1


def test_the_beam_grows_by_one_place_after_equal_shares():
    settings = BeamSearchOptimizationSettings()
    assert [beam_width(settings, progress / 10) for progress in range(10)] == [2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert beam_width(BeamSearchOptimizationSettings(initial_width=3, width=3), 0.99) == 3
