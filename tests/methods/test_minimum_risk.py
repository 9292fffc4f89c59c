"""Minimum risk: the gradient of the risk over the enumerated subset, by autograd, duplicates counted once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from method_worlds import make_batch as make_larger_batch
from method_worlds import make_networks, make_settings
from seqcritic.contracts.actor import Actor, LengthLimits, SpecialTokens
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.networks import Networks
from seqcritic.methods import rollout
from seqcritic.methods.minimum_risk import MinimumRisk, repeated
from seqcritic.methods.n_best import search_n_best
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.methods import method_section
from seqcritic.tensors import rows as all_rows
from seqcritic.testing.worlds import (
    World,
    gradients,
    held_masks,
    largest_difference,
    make_actor,
    make_batch,
    make_world,
)

REFERENCE = (1, 2, 0)
SCORE = EditDistanceScore(normalise=False)


def run(
    actor: RecurrentActor, rows: list[int], sharpness: float, monkeypatch: pytest.MonkeyPatch, weight: float = 0.0
) -> Outcome:
    """Return what the method makes of some of all sequences as its samples."""
    world = make_world(actor, masks=held_masks(actor))
    monkeypatch.setattr(rollout, "sample", lambda *rest: world.sample_of(rows))
    knobs = {"samples": len(rows), "sharpness": sharpness}
    settings = method_section()(
        name="minimum-risk", minimum_risk=knobs, likelihood_weight=weight, reward_dropout="held"
    )
    return MinimumRisk(settings, SCORE, True)(Networks(actor), make_batch(), torch.Generator(), 0.0)


def subset_loss(world: World, rows: set[int], sharpness: float) -> Tensor:
    """−Σ q R over a set of sequences, from their exact probabilities."""
    chosen = sorted(rows)
    powers = world.sequence_probabilities[chosen] ** sharpness
    return -(powers / powers.sum() * world.rewards[chosen].sum(1)).sum()


@pytest.mark.parametrize("sharpness", [5e-3, 1.0, 2.5])
@pytest.mark.parametrize("drawn", ["distinct", "repeated", "with the reference", "only the reference"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_the_gradient_is_that_of_the_risk_over_the_set(drawn, sharpness, dropout, monkeypatch):
    actor = make_actor(dropout=dropout)
    world = make_world(actor, masks=held_masks(actor))
    reference = world.sequences.index(REFERENCE)
    others = [row for row in range(len(world.sequences)) if row != reference][::3]
    rows = {
        "distinct": others,
        "repeated": [*others, others[0], others[2], others[0]],
        "with the reference": [others[1], reference, *others, reference],
        "only the reference": [reference, reference],
    }[drawn]
    outcome = run(actor, rows, sharpness, monkeypatch)
    expected = subset_loss(world, {*rows, reference}, sharpness)
    assert torch.allclose(outcome.loss, expected, atol=1e-12)
    assert largest_difference(gradients(outcome.loss, actor), gradients(expected, actor)) < 1e-10
    assert outcome.measurements["distinct_candidates"] == len({*rows, reference})


def test_over_all_sequences_at_sharpness_1_it_is_the_expected_return(monkeypatch):
    actor = make_actor()
    outcome = run(actor, list(range(len(make_world(actor).sequences))), 1.0, monkeypatch)
    expected = gradients(-make_world(actor).expected_return, actor)
    assert largest_difference(gradients(outcome.loss, actor), expected) < 1e-10


def test_the_likelihood_term_is_added_with_its_weight(monkeypatch):
    actor = make_actor()
    plain, mixed = (run(actor, [0, 5, 7], 1.0, monkeypatch, weight) for weight in (0.0, 0.25))
    likelihood = mixed.measurements["likelihood_loss"]
    world = make_world(actor)
    assert torch.allclose(likelihood, -world.sequence_probabilities[world.sequences.index(REFERENCE)].log())
    assert torch.allclose(mixed.loss, plain.loss + 0.25 * likelihood, atol=1e-12)


def test_a_candidate_counts_once_among_those_before_it():
    candidates = torch.tensor([[[1, 2], [1, 0], [1, 2], [1, 2]], [[1, 2], [2, 1], [1, 1], [2, 1]]])
    expected = [[False, False, True, True], [False, False, False, True]]
    assert repeated(candidates).tolist() == expected


# over the n-best list of a beam search


def search(actor: RecurrentActor, width: int, sharpness: float, weight: float = 0.0) -> Outcome:
    knobs = {"candidates": "beam", "samples": width, "sharpness": sharpness}
    settings = method_section()(
        name="minimum-risk", minimum_risk=knobs, likelihood_weight=weight, reward_dropout="held"
    )
    return MinimumRisk(settings, SCORE, True)(Networks(actor), make_batch(), torch.Generator(), 0.0)


@pytest.mark.parametrize("sharpness", [5e-3, 1.0])
@pytest.mark.parametrize("width", [1, 3, 4, 40])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_over_an_n_best_list_it_is_the_risk_of_the_renormalised_list(width, sharpness, dropout, monkeypatch):
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=1))  # the cap of the world
    actor = make_actor(dropout=dropout)
    masks = held_masks(actor)
    world = make_world(actor, masks=masks)
    batch = make_batch()
    found = search_n_best(actor, actor.encode(batch.sources, batch.source_mask, masks), batch, width)
    rows = {
        world.sequences.index(tuple(tokens[mask].tolist()))
        for tokens, mask in zip(found.tokens[0], found.mask[0], strict=True)
    }
    outcome = search(actor, width, sharpness)
    assert len(rows) == outcome.measurements["distinct_candidates"] == min(width, len(world.sequences))
    expected = subset_loss(world, rows, sharpness)
    assert torch.allclose(outcome.loss, expected, atol=1e-12)
    assert largest_difference(gradients(outcome.loss, actor), gradients(expected, actor)) < 1e-10
    most_likely = int(world.sequence_probabilities.argmax())
    if width > 1:
        assert most_likely in rows
    if width == 40 and sharpness == 1:
        assert torch.allclose(outcome.loss, -world.expected_return, atol=1e-12), "of all there is"


def test_the_likelihood_term_joins_an_n_best_list_too(monkeypatch):
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=1))
    actor = make_actor()
    plain, mixed = (search(actor, 4, 1.0, weight) for weight in (0.0, 0.25))
    likelihood = mixed.measurements["likelihood_loss"]
    world = make_world(actor)
    assert torch.allclose(likelihood, -world.sequence_probabilities[world.sequences.index(REFERENCE)].log())
    assert torch.allclose(mixed.loss, plain.loss + 0.25 * likelihood, atol=1e-12)


def test_hypotheses_of_an_actor_with_other_special_tokens_end_with_its_end_token():
    """Padding stands only after the end token, whichever token that is."""
    settings = make_settings("minimum-risk")
    actor = make_networks(settings).actor
    actor.special = SpecialTokens(end=(2,), padding=5)
    batch = make_larger_batch()
    found = search_n_best(actor, actor.encode(batch.sources, batch.source_mask), batch, 3)
    assert bool((found.tokens[~found.mask] == 5).all())
    assert bool((found.tokens == 2).any())
    assert torch.equal(
        actor.special.up_to_end(found.tokens.flatten(0, 1)) & found.mask.flatten(0, 1), found.mask.flatten(0, 1)
    )
    logits, _ = actor.score(
        all_rows.repeat(actor.encode(batch.sources, batch.source_mask), 3), found.tokens.flatten(0, 1)
    )
    taken = torch.log_softmax(logits, 2).gather(2, found.tokens.flatten(0, 1)[:, :, None])[:, :, 0]
    expected = torch.where(found.mask.flatten(0, 1), taken, 0.0).sum(1)
    assert torch.allclose(expected, found.log_probabilities.flatten(), atol=1e-10)
