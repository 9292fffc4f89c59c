"""Beam-search optimisation against a plain implementation that lists hypotheses and adds log-probabilities.

The method draws nothing: its loss and its gradient must be those of the plain one, for any actor, reference and width.
"""

from __future__ import annotations

import pytest
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from method_worlds import SCORE, make_settings
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.methods.beam_search_optimization import BeamSearchOptimization
from seqcritic.models.gru.actor import Actor
from seqcritic.testing.worlds import NUM_TOKENS, gradients, largest_difference, make_actor

SOURCE = torch.tensor([[2, 1, 0]])
Tokens = tuple[int, ...]


@pytest.fixture(autouse=True)
def double_costs():
    """Costs are in the default type; let it be the actor's."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make_sure_actor(seed: int) -> Actor:
    """An actor that is surer of itself than a fresh one, so that some references keep their places for a while."""
    actor = make_actor(seed)
    for parameter in actor.parameters():
        parameter.data *= 1 + seed / 2
    return actor


def make_pair(reference: Tokens) -> Batch:
    mask = torch.ones(1, len(reference), dtype=torch.bool)
    return Batch(SOURCE, torch.ones_like(SOURCE, dtype=torch.bool), torch.tensor([reference]), mask)


def log_probability(actor: Actor, tokens: Tokens) -> Tensor:
    """Return log p of a sequence up to its end token, if it has one."""
    read = tokens[: tokens.index(END) + 1] if END in tokens else tokens
    memory = actor.encode(SOURCE, torch.ones_like(SOURCE, dtype=torch.bool))
    logits, _ = actor.score(memory, torch.tensor([read]))
    return torch.log_softmax(logits[0], 1)[range(len(read)), read].sum()


def continuations(tokens: Tokens) -> list[Tokens]:
    """Return what may follow: an ended hypothesis stays as it is, written with one more end token."""
    return [(*tokens, token) for token in ([END] if END in tokens else range(NUM_TOKENS))]


def cost(rival: Tokens, ours: Tokens) -> float:
    """Return Δ = 1 − R(rival) / R(ours), R = |ours| − distance, at most 1; 1 where ours scores nothing."""
    theirs, words = ([token for token in part if token != END] for part in (rival, ours))
    reached = len(words) - Levenshtein.distance(theirs, words)
    return max(0.0, 1 - reached / len(words)) if words else 1.0


def plain_loss(actor: Actor, reference: Tokens, width: int) -> tuple[Tensor, list[tuple[int, int, Tokens]]]:
    """Return the loss and the violations: start, place and rival of each."""
    loss, violations = torch.zeros((), dtype=torch.float64), []
    beam, start = [()], 0
    for place in range(len(reference)):
        ours = reference[: place + 1]
        expanded = [tokens for one in beam for tokens in continuations(one) if tokens != ours]
        expanded.sort(key=lambda tokens: -float(log_probability(actor, tokens).detach()))
        incorrect = expanded[: width - 1]
        rank = 0 if place == len(reference) - 1 else width - 2
        beam = [ours, *incorrect]
        if rank >= len(incorrect):
            continue
        rival = incorrect[rank]
        gap = 1 - log_probability(actor, ours) + log_probability(actor, rival)
        if gap.item() > 0:
            loss = loss + cost(rival[start:], ours[start:]) * gap
            violations.append((start, place, rival))
            beam, start = [ours], place + 1
    return loss, violations


REFERENCES = [(1, 2, END), (2, 2, 1, END), (1, 1, 2, 1, END), (2, END), (END,)]


@pytest.mark.parametrize("width", [2, 3, 4])
def test_loss_and_gradient_are_those_of_the_plain_search(width):
    own = {"initial_width": width, "width": width}
    method = BeamSearchOptimization(
        make_settings("beam-search-optimization", beam_search_optimization=own).method, SCORE, True
    )
    kinds = set()
    for seed in range(8):
        actor = make_sure_actor(seed)
        for reference in REFERENCES:
            outcome = method(Networks(actor), make_pair(reference), torch.Generator(), 0.0)
            loss, violations = plain_loss(actor, reference, width)
            assert outcome.loss.item() == pytest.approx(loss.item(), abs=1e-10)
            assert outcome.measurements["violations"].item() == len(violations)
            if violations:
                assert largest_difference(gradients(outcome.loss, actor), gradients(loss, actor)) < 1e-10
            kinds |= {(start > 0, place > start) for start, place, _ in violations}
    # Before and after a restart, and rivals that left the reference before their last token as well as with it.
    assert {(False, False), (True, False)} <= kinds
    assert width == 2 or {(False, True), (True, True)} <= kinds
