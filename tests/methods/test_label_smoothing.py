"""Label smoothing: PyTorch's cross entropy as the oracle, in every place where references are learnt by likelihood."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from method_worlds import NUM_TOKENS, SCORE, make_batch, make_networks, make_settings
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.errors import UserError
from seqcritic.methods.build import build_method
from seqcritic.methods.masked_losses import smoothed_loss, token_log_probabilities
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.plain_loops import use_plain_loops
from seqcritic.testing.worlds import gradients, largest_difference


def oracle(networks: Networks, batch: Batch, smoothing: float) -> Tensor:
    """The cross entropy of the references, a sum over the tokens and a mean over the examples."""
    actor = networks.actor
    logits, _ = actor.score(actor.encode(batch.sources, batch.source_mask), batch.references)
    total = torch.nn.functional.cross_entropy(
        logits[batch.reference_mask], batch.references[batch.reference_mask], label_smoothing=smoothing, reduction="sum"
    )
    return total / len(batch)


def shortened(batch: Batch) -> Batch:
    """The batch with one reference that ends early, so that something is masked."""
    mask = batch.reference_mask.clone()
    mask[0, 2:] = False
    return Batch(batch.sources, batch.source_mask, batch.references, mask)


@pytest.mark.parametrize("plain", [False, True], ids=["ours", "plain loops"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("phase", ["actor", "train"])
def test_the_loss_and_its_gradient_are_those_of_the_cross_entropy(phase: str, smoothing: float, plain: bool):
    settings = make_settings("likelihood", label_smoothing=smoothing)
    networks, batch = make_networks(settings), shortened(make_batch())
    method = build_method(settings, phase, SCORE)
    if plain:
        with use_plain_loops():
            outcome = method(networks, batch, torch.Generator(), 0.0)
    else:
        outcome = method(networks, batch, torch.Generator(), 0.0)
    expected = oracle(networks, batch, smoothing)
    assert outcome.loss.item() == pytest.approx(expected.item(), abs=1e-10)
    assert largest_difference(gradients(outcome.loss, networks.actor), gradients(expected, networks.actor)) < 1e-10
    unsmoothed = outcome.measurements["likelihood_loss"].item()
    assert unsmoothed == pytest.approx(oracle(networks, batch, 0.0).item(), abs=1e-10), "what is logged can be compared"
    assert ("smoothed_loss" in outcome.measurements) == (smoothing > 0)


def test_tokens_that_are_never_said_have_no_share():
    """As pretrained actors suppress padding: the loss is that of the other tokens alone."""
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(4, 3, NUM_TOKENS, dtype=torch.float64, generator=generator).requires_grad_()
    suppressed = logits + torch.tensor([0.0, 0.0, -1e9, 0.0, 0.0, -1e9])
    kept, labels = [0, 1, 3, 4], torch.tensor([[0, 1, 3], [3, 0, 0], [1, 1, 1], [0, 3, 3]])
    mask = torch.ones(4, 3, dtype=torch.bool)
    mask[1, 2] = False
    packed = Packed.of(suppressed, mask)
    found = smoothed_loss(packed, token_log_probabilities(packed, labels), mask, 0.2)
    renamed = torch.tensor([0, 1, -1, 2])[labels]
    expected = torch.nn.functional.cross_entropy(
        logits[mask][:, kept], renamed[mask], label_smoothing=0.2, reduction="sum"
    )
    assert found.item() == pytest.approx(expected.item() / 4, abs=1e-10)
    ours, theirs = (torch.autograd.grad(each, logits)[0] for each in (found, expected / 4))
    assert torch.allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("method", ["actor-critic", "minimum-risk", "raml", "beam-search-optimization"])
def test_the_likelihood_term_of_a_mixture_is_smoothed(method: str):
    def run(**changes: float) -> list[Tensor]:
        settings = make_settings(method, **changes)
        outcome = build_method(settings, "train", SCORE)(
            make_networks(settings), make_batch(), torch.Generator().manual_seed(0), 0.0
        )
        outcome.loss.backward()
        return [outcome.loss.detach()]

    networks = make_networks(make_settings(method))
    (plain,), (mixed,) = run(label_smoothing=0.3), run(label_smoothing=0.3, likelihood_weight=0.5)
    assert (mixed - plain).item() == pytest.approx(0.5 * oracle(networks, make_batch(), 0.3).item(), abs=1e-10)
    assert NUM_TOKENS > 2, "of which ε has a share each"


@pytest.mark.parametrize("wrong", [-0.1, 1.0, float("nan"), "much"])
def test_a_share_outside_its_range_is_refused(wrong: object):
    with pytest.raises(UserError, match=r"^method\.label_smoothing: "):
        make_settings("likelihood", label_smoothing=wrong)
