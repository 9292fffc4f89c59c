"""Moments of gradient estimates without their covariance matrix: group means, and sums of squared lengths.

Draws are dealt to G groups in turn. Let m_i be a group's mean of one estimator and n_i that of another. Groups are
independent, so the products of different groups estimate those of the expectations without the noise's own length:

    <μ, ν> ≈ mean_{i≠j} <m_i, n_j>        E‖g‖² ≈ mean ‖g‖²        tr Cov(g) = E‖g‖² − <μ, μ>

All figures are functions of these products. Their standard errors come from leaving out one group at a time (the
jackknife), which needs only the G × G products, not the gradients.

Shapes: E estimators, G groups, P weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqcritic.contracts.score import Array
from seqcritic.report.diagnosis import Figure

NUM_GROUPS, FEWEST_GROUPS = 16, 4
MEMORY_BYTES = 2 << 30  # of all group sums together


@dataclass(frozen=True)
class Products:
    """<μ_e, μ_f> [E, E] and E‖g_e‖² [E] as estimated from some groups."""

    names: tuple[str, ...]
    means: Array
    squares: Array

    def product(self, name: str, other: str) -> float:
        """<μ_e, μ_f>."""
        return float(self.means[self.names.index(name), self.names.index(other)])

    def variance(self, name: str) -> float:
        """tr Cov(g) = E‖g‖² − ‖E g‖²."""
        return float(self.squares[self.names.index(name)]) - self.product(name, name)

    def difference(self, name: str, other: str) -> float:
        """‖μ_e − μ_f‖²; below 0 where it is noise."""
        return self.product(name, name) + self.product(other, other) - 2 * self.product(name, other)


class Moments:
    """Streaming moments of several estimators that are drawn together."""

    def __init__(self, names: Sequence[str], num_weights: int, dtype: torch.dtype) -> None:
        self.names = tuple(names)
        # Group means are all that is kept of the gradients, and still G times the weights of the actor.
        affordable = MEMORY_BYTES // (len(self.names) * num_weights * dtype.itemsize)
        # Never fewer than four: with one left out there must be products of different groups, and some to compare.
        self.num_groups = max(FEWEST_GROUPS, min(NUM_GROUPS, affordable))
        self.sums = torch.zeros(len(self.names), self.num_groups, num_weights, dtype=dtype)
        self.squares = np.zeros((len(self.names), self.num_groups))
        self.num_draws = 0

    def add(self, gradients: Mapping[str, Tensor]) -> None:
        """Count one draw of every estimator, [P] each."""
        # In turn, so that all groups are equally full after each round.
        group = self.num_draws % self.num_groups
        for index, name in enumerate(self.names):
            # Kept on the CPU: the sums of all groups are many times the size of the actor.
            gradient = gradients[name].cpu()
            self.sums[index, group] += gradient
            # In float64: squares of millions of small weights are summed over thousands of draws.
            self.squares[index, group] += gradient.double().square().sum().item()
        self.num_draws += 1

    def estimate(self, figures: Callable[[Products], Mapping[str, float]]) -> dict[str, Figure]:
        """Return functions of the moments, by name, with their standard errors; the groups must be full."""
        assert self.num_draws, "nothing was drawn"
        assert self.num_draws % self.num_groups == 0, "the groups are not equally full"
        products, squares = self._group_products()
        everything = np.arange(self.num_groups)
        whole = figures(self._products_of(products, squares, everything))
        # Groups, not draws, are left out: the products of groups are at hand, the draws are gone.
        parts = [figures(self._products_of(products, squares, np.delete(everything, left))) for left in everything]
        return {
            name: Figure(value, jackknife_error(np.array([part[name] for part in parts])))
            for name, value in whole.items()
        }

    def _group_products(self) -> tuple[Array, Array]:
        """Return <m_i, n_j> [E, G, E, G] and the mean ‖g‖² of every group [E, G]."""
        size = self.num_draws // self.num_groups  # draws in each group
        flat = self.sums.flatten(0, 1)
        products = torch.zeros(len(flat), len(flat), dtype=torch.float64)
        for first in range(0, flat.shape[1], 1 << 16):  # in double precision, a piece at a time
            piece = flat[:, first : first + (1 << 16)].double()
            products += piece @ piece.T
        shape = (len(self.names), self.num_groups)
        return products.numpy().reshape(*shape, *shape) / size**2, self.squares / size

    def _products_of(self, products: Array, squares: Array, groups: npt.NDArray[np.int64]) -> Products:
        """Return the moments as estimated from the groups [K] alone."""
        chosen = products[:, groups][:, :, :, groups]
        count = len(groups)
        # Without i = j: a group's product with itself has its own noise's length in it.
        together = chosen.sum(axis=(1, 3)) - np.einsum("eifi->ef", chosen)
        return Products(self.names, together / (count * (count - 1)), squares[:, groups].mean(axis=1))  # [E, E] and [E]


def jackknife_error(left_out: Array) -> float:
    """Return the standard error of a figure from its values with one group left out each."""
    if not np.isfinite(left_out).all():
        return math.nan
    count = len(left_out)
    # Without one group a mean moves by 1 / (count − 1) of what the group is off: the factor makes up for it.
    return math.sqrt((count - 1) / count * float(np.square(left_out - left_out.mean()).sum()))
