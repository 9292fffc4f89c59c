"""Direct loss: its gradient on a linear model, and on the enumerated world with a beam that holds everything."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Scorable
from seqcritic.data.vocabulary import END
from seqcritic.methods.direct_loss import DirectLoss, choose_pairs, direct_loss
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.testing.worlds import gradients, largest_difference, make_actor, make_batch, make_world
from test_gradients import SCORE, make_networks, make_settings
from test_gradients import make_batch as make_larger_batch

NUM_INPUTS = 400_000


class LengthScore(EditDistanceScore):
    """R(Ŷ) = |Ŷ|."""

    def prefix_scores(self, batch: Scorable) -> Tensor:
        steps = torch.arange(batch.predictions.shape[1] + 1)
        return torch.minimum(steps, batch.lengths[:, None]).double()


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.1), (-0.1, 0.0), (-0.1, 0.1)])
def test_the_gradient_on_a_linear_model_is_that_of_the_expected_score(low, high):
    """Scores w · φ(y) + g_y(x) whose inputs are Gumbel noise: what is decoded has the softmax of w · φ as its law."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    weights = torch.randn(3, dtype=torch.float64, generator=generator).requires_grad_()
    scores = torch.tensor([0.0, 1.0, 2.0, 0.5, 1.5, 0.2], dtype=torch.float64)
    expected = (torch.softmax(features @ weights, 0) * scores).sum()
    (exact,) = torch.autograd.grad(-expected, weights)
    noise = -torch.empty(NUM_INPUTS, 6, dtype=torch.float64).exponential_(generator=generator).log()
    decoded = features @ weights + noise
    pairs = choose_pairs(decoded.detach(), scores.expand(NUM_INPUTS, -1), low, high)
    (found,) = torch.autograd.grad(direct_loss(decoded.gather(1, pairs), low, high), weights)
    assert float(torch.cosine_similarity(found, exact, dim=0)) > 0.99
    assert float(found.norm() / exact.norm()) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("weight", [0.0, 0.25])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("direction", ["better", "worse", "both"])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_with_all_sequences_in_the_beam_it_is_the_enumerated_direct_loss(
    monkeypatch, dropout, direction, epsilon, weight
):
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=1))
    own = {"direction": direction, "epsilon": epsilon, "width": 40, "samples": 2}
    settings = make_settings("direct-loss", direct_loss=own, likelihood_weight=weight).method
    actor = make_actor(dropout=dropout)
    if direction == "worse":
        actor.decoder.output_layer.bias.data[END] -= 2.5  # so that it does not decode the worst, nothing
    found = DirectLoss(settings, LengthScore(), True)(
        Networks(actor), make_batch(), torch.Generator().manual_seed(0), 0.0
    )
    world = make_world(actor, masks=actor.draw_masks(1, torch.Generator().manual_seed(0)))
    log_probabilities, scores = world.sequence_probabilities.log(), (world.tokens != END).sum(1)
    low, high = {"better": (0, epsilon), "worse": (-epsilon, 0), "both": (-epsilon, epsilon)}[direction]
    worse, better = ((log_probabilities + way * scores).argmax() for way in (low, high))
    loss = (log_probabilities[worse] - log_probabilities[better]) / (high - low)
    assert float(found.measurements["actor_loss"]) == pytest.approx(loss.item(), abs=1e-10)
    assert float(found.measurements["decoded_score"]) == float(scores[log_probabilities.argmax()])
    assert float(found.measurements["score_gap"]) == float(scores[better] - scores[worse])
    assert float(found.measurements["pairs_differing"]) == float(worse != better)
    reference = world.sequences.index((1, 2, 0))
    loss = loss - weight * log_probabilities[reference]
    assert largest_difference(gradients(found.loss, actor), gradients(loss, actor)) < 1e-10
    if epsilon == 20.0:
        assert worse != better


def test_shorter_and_capped_candidates_count_their_own_tokens_only():
    """The log-probabilities that choose the pairs are those of the loss, example by example."""
    settings = make_settings("direct-loss", direct_loss={"epsilon": 5.0}).method
    actor = make_networks(make_settings("direct-loss")).actor
    batch = make_larger_batch(20)
    method = DirectLoss(settings, SCORE, True)
    memory = actor.encode(batch.sources, batch.source_mask)
    tokens, log_probabilities, scores, _ = method._candidates(actor, memory, batch, torch.Generator().manual_seed(1))
    pairs = choose_pairs(log_probabilities, scores, -5.0, 5.0)
    expected = direct_loss(log_probabilities.gather(1, pairs), -5.0, 5.0)
    outcome = method(Networks(actor), batch, torch.Generator().manual_seed(1), 0.0)
    assert outcome.loss.item() == pytest.approx(expected.item(), abs=1e-10)
    lengths = (tokens != END).sum(2)
    assert len(lengths.unique()) > 3
    assert tokens.shape[:2] == (20, 8)
