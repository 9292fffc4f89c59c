"""Whether an estimator has the gradient of the expected return as its expectation: a sum over all that may be drawn.

An estimator is a function of a draw (testing/worlds.py) that returns a loss; its estimate is the gradient of that loss
for the actor's weights. With M samples of the one pair, all N^M tuples of sequences are gone through, each weighed with
its probability:

    Σ_{Ŷ^1..Ŷ^M} Π_m p(Ŷ^m) d loss(Ŷ^1..Ŷ^M)/dθ   against   −dV/dθ
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor, nn

from seqcritic.contracts.method import Method
from seqcritic.contracts.networks import Networks
from seqcritic.methods import rollout
from seqcritic.testing.worlds import Draw, World, gradients, largest_difference

Estimator = Callable[[Draw], Tensor]
"""From M drawn sequences of one pair to a loss, a mean over the M."""


def method_estimator(method: Method, networks: Networks, world: World) -> Estimator:
    """Return a method of the contract as an estimator: it runs as it is, but what it draws are the given sequences.

    The actor of the networks must be that of the world.
    """

    def estimate(draw: Draw) -> Tensor:
        # Where methods look it up when they draw; all else of the method runs as it is.
        with patch.object(rollout, "sample", lambda *rest: draw.as_sample()):
            return method(networks, world.batch, torch.Generator(), 0.0).loss

    return estimate


def expected_gradients(
    estimator: Estimator, world: World, samples: int = 1, network: nn.Module | None = None
) -> list[Tensor]:
    """Return the expectation of an estimate, for every weight of the actor or of another network."""
    network = world.actor if network is None else network
    total = [torch.zeros_like(parameter) for parameter in network.parameters()]
    # Constants: the estimate's own gradient is weighed, not that of how often it is made.
    probabilities = world.sequence_probabilities.detach()
    for rows in itertools.product(range(len(world.sequences)), repeat=samples):
        # Samples are independent: a tuple has the product of their probabilities.
        loss = estimator(world.draw(rows))
        for sum_so_far, gradient in zip(total, gradients(loss, network), strict=True):
            sum_so_far += probabilities[list(rows)].prod() * gradient
    return total


def assert_unbiased(estimator: Estimator, world: World, samples: int = 1, tolerance: float = 1e-8) -> None:
    """Fail with the length and the direction of the bias, unless the expectation is −dV/dθ for every weight."""
    found = expected_gradients(estimator, world, samples)
    exact = [-gradient for gradient in world.exact_gradients()]
    difference = largest_difference(found, exact)
    if difference <= tolerance:  # not of NaN
        return
    ours, truth = (torch.cat([part.flatten() for part in parts]) for parts in (found, exact))
    bias = float((ours - truth).norm() / truth.norm())
    cosine = float(torch.cosine_similarity(ours, truth, dim=0))
    raise AssertionError(
        f"the estimator is biased: by {bias:.3g} of the length of the true gradient, cosine {cosine:.3g} "
        f"(largest difference of a weight {difference:.3g}, allowed {tolerance:g})"
    )
