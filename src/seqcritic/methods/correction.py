"""How much of the correction actor-critic takes where `method.correction` is `auto`: the η of least mean squared error.

With a the gradient of the actor's loss without the correction and c that of the correction, both of one batch, and b
what a lacks of the true gradient ∇ because the critic errs,

    E[a] = ∇ − b,   E[c] = b,   E[a + η c] = ∇ − (1 − η) b.

Training goes along the sum of many updates, in which noise averages out and bias does not: the mean of m independent
batches is off the true gradient by

    MSE(η) = (1 − η)² ‖b‖² + (Var a + 2 η Cov(a, c) + η² Var c) / m,
    least at   η = (‖b‖² − Cov(a, c) / m) / (‖b‖² + Var c / m),   kept within [0, 1].

(Var x = E‖x − E x‖² and Cov(x, y) = E⟨x − E x, y − E y⟩ are those of the batches' means: one over n of the ones over
examples, for n independent examples.) They are estimated from running means x̄ of the vectors themselves,

    x̄_k = x̄_{k-1} + s_k (x_k − x̄_{k-1}),   s_k = (1 − ρ) / (1 − ρ^k),   W_k = (1 − s_k)² W_{k-1} + s_k²,

in which the batches have weights of sum 1 and sum of squares W_k, so that while the gradients' laws stay,

    E‖c_k − c̄_{k-1}‖² = (1 + W_{k-1}) Var c,   the same with a for Cov,   E‖c̄_k‖² = ‖b‖² + W_k Var c.

m is how long the laws may be taken to stay, and that is what the running means take: m = 1/(1 − ρ) batches. Adam's own
memory, 1/(1 − β₁) = 10 updates, is too short a time to judge by: what one step gains in noise, all that follow lose in
bias. With m = 10 the dial stood at 0.2 to 0.3 in spelling correction, where 0.5 and 1 end far better
(docs/results/correction.md).

The bias one has to find is as short as the noise of m batches. One batch says nothing of it: an estimate from its two
halves has the noise of a batch. The mean of the vectors has that of 1/W, some 2/(1 − ρ) batches. It also needs no
gradient of a single example, and no more than one example a batch.

What is simplified: lengths are those of the gradient, not of Adam's step, and laws that change, as they do in training,
are followed with a delay of 1/(1 − ρ) batches.

Shapes: P weights of the actor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

DECAY = 0.99  # ρ
HORIZON = 1 / (1 - DECAY)  # m, in batches
FEWEST_BATCHES = 10  # before noise can be told from bias

REST, CORRECTION = "rest", "correction"


def least_error(squared_bias: float, variance: float, covariance: float, horizon: float = HORIZON) -> float:
    """Return the η in [0, 1] of least mean squared error, from ‖b‖², Var c and Cov(a, c) of one batch."""
    at_stake = squared_bias + variance / horizon
    if at_stake <= 0:
        return 0.0  # there is nothing to correct
    return min(1.0, max(0.0, (squared_bias - covariance / horizon) / at_stake))


class AutomaticCorrection:
    """The running means, what they say of bias and noise, and the η that follows from them."""

    def __init__(self) -> None:
        self.num_batches = 0  # k
        self.squared_weights = 0.0  # W_k
        self.variance = 0.0  # of c
        self.covariance = 0.0  # of a and c
        self.means: dict[str, Tensor] = {}  # ā and c̄, [P] each

    @property
    def squared_bias(self) -> float:
        """‖b‖²: what is left of ‖c̄‖² without its noise; by chance it may be less than nothing, then it is 0."""
        if self.num_batches == 0:
            return 0.0
        mean = self.means[CORRECTION]
        return max(0.0, float(torch.dot(mean, mean)) - self.squared_weights * self.variance)

    @property
    def eta(self) -> float:
        """The weight of the next batch's correction; 1, which is unbiased, until noise can be told from bias."""
        if self.num_batches < FEWEST_BATCHES:
            return 1.0
        return least_error(self.squared_bias, self.variance, self.covariance)

    def observe(self, gradients: Mapping[str, Tensor]) -> None:
        """Take in a batch's gradients [P]: of the correction, and of the rest of the actor's loss."""
        if self.num_batches == 0:
            self.means = {name: torch.zeros_like(gradient) for name, gradient in gradients.items()}
        else:
            deviations = {name: gradients[name] - self.means[name] for name in (REST, CORRECTION)}
            expected = 1 + self.squared_weights
            # The first batch has nothing to deviate from: the k-th deviation is that of batch k + 1.
            step = _step(self.num_batches)
            variance = float(torch.dot(deviations[CORRECTION], deviations[CORRECTION])) / expected
            covariance = float(torch.dot(deviations[REST], deviations[CORRECTION])) / expected
            self.variance += step * (variance - self.variance)
            self.covariance += step * (covariance - self.covariance)
        self.num_batches += 1
        step = _step(self.num_batches)
        for name, mean in self.means.items():
            mean.lerp_(gradients[name], step)
        self.squared_weights = (1 - step) ** 2 * self.squared_weights + step**2

    def measurements(self) -> dict[str, Tensor]:
        """Return the figures to log: η, and the squared bias and the variance that it weighs."""
        found = {
            "correction": self.eta,
            "correction_bias": self.squared_bias,
            "correction_variance": self.variance,
        }
        return {name: torch.tensor(value, dtype=torch.float64, device="cpu") for name, value in found.items()}

    def tensors(self) -> dict[str, Tensor]:
        """Return the state, to the bit."""
        figures = (self.num_batches, self.squared_weights, self.variance, self.covariance)
        return {"figures": torch.tensor(figures, dtype=torch.float64, device="cpu")} | self.means

    def load_tensors(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore what `tensors` returned."""
        num_batches, self.squared_weights, self.variance, self.covariance = tensors["figures"].tolist()
        self.num_batches = int(num_batches)
        self.means = {name: tensor.to(device) for name, tensor in tensors.items() if name != "figures"}


def _step(number: int) -> float:
    """s_k, the part of the way that the k-th value moves its running mean."""
    step: float = (1 - DECAY) / (1 - DECAY**number)
    return step


def gradient_of(loss: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Return the gradient [P] of a loss for all weights in a row; the graph is kept for others."""
    found = torch.autograd.grad(loss, weights, retain_graph=True, materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in found])


def with_gradient(loss: Tensor, weights: Sequence[Tensor], gradient: Tensor) -> Tensor:
    """Return a loss of the same value whose gradient for the weights is known, [P]: no second pass through a graph."""
    known = torch.split(gradient, [weight.numel() for weight in weights])
    linear = sum(torch.dot(weight.flatten(), part) for weight, part in zip(weights, known, strict=True))
    return loss.detach() + (linear - linear.detach())  # type: ignore[union-attr]
