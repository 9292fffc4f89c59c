"""Bias and variance of the estimators at one checkpoint of training, against the true gradient of the expected return.

One *draw* is one sample for each of K fixed examples; an estimator turns it into one estimate g of

    ∇V = d/dθ (1/K) Σ_k E_{Ŷ ~ p(·|X_k)} R(Ŷ, Y_k)

and all figures are of g: variance tr Cov(g), bias b = E g − ∇V, mean squared error ‖b‖² + tr Cov(g). M samples for each
example, averaged, divide the variance by M, exactly, and leave the bias as it is. The truth is the mean of the
unbiased estimator with the least variance; draws go on until that mean's own error, √(tr Cov / draws), is a small
fraction of ‖∇V‖, or their largest number is reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from seqcritic.analysis.estimators import UNBIASED, Subject, draw_gradients
from seqcritic.analysis.moments import Moments, Products
from seqcritic.contracts.batch import Batch
from seqcritic.models.baseline import LinearBaseline
from seqcritic.report.diagnosis import SAMPLES, EstimatorRow, Figure

FIRST_LOOK = 64
PATIENCE = 1.3  # from one look at the error to the next, in draws

ReportError = Callable[[int, float], None]
Figures = dict[str, float]


@dataclass(frozen=True)
class Measurement:
    """What the draws tell: the length of the true gradient, its relative error, and a row for each estimator."""

    draws: int
    gradient_norm: float
    gradient_error: float
    truth: str
    estimators: tuple[EstimatorRow, ...]


def measure(
    subject: Subject,
    baseline: LinearBaseline,
    batches: Sequence[Batch],
    generator: torch.Generator,
    most_draws: int,
    wanted_error: float,
    report_error: ReportError = lambda draws, error: None,
) -> Measurement:
    """Draw until the true gradient is known to `wanted_error` of its length, or `most_draws` times at most.

    Draws come in whole groups, of which there are at least two rounds; `report_error` is told their number and the
    error.
    """
    first = subject.weights[0]
    moments = Moments(subject.estimators, subject.num_weights, first.dtype)
    look = min(FIRST_LOOK, most_draws)
    while True:
        # A round at a time: `estimate` needs groups that are equally full.
        for _ in range(moments.num_groups):
            moments.add(draw_gradients(subject, baseline, batches, generator))
        # A look costs all products of the groups, so that looks grow further apart.
        if moments.num_draws < max(look, 2 * moments.num_groups):
            continue
        # Chosen anew at each look, as variances are known better: the first choice may have been chance.
        truth = find_truth(moments)
        error = gradient_error(moments, truth)
        report_error(moments.num_draws, error)
        if error <= wanted_error or moments.num_draws >= most_draws:
            return summarise(moments, truth, subject.followed)
        look = min(math.ceil(PATIENCE * moments.num_draws), most_draws)


def find_truth(moments: Moments) -> str:
    """Return the unbiased estimator with the least variance."""
    unbiased = [name for name in moments.names if name in UNBIASED]
    found = moments.estimate(lambda products: {name: products.variance(name) for name in unbiased})
    # All of them have the same mean; that with the least noise tells it soonest.
    return min(unbiased, key=lambda name: found[name].value)


def gradient_error(moments: Moments, truth: str) -> float:
    """Return √(tr Cov / draws) / ‖∇V‖: how far the mean is from the true gradient, as a fraction of its length."""

    def square(products: Products) -> Figures:
        # The square, for an estimate of it may be negative; the root is taken below.
        return {"error": _ratio(products.variance(truth) / moments.num_draws, products.product(truth, truth))}

    found = moments.estimate(square)["error"].value
    # A variance estimated below 0 says that there are too few draws, not that the mean is exact.
    return math.sqrt(found) if found >= 0 else math.inf


def summarise(moments: Moments, truth: str, followed: str) -> Measurement:
    """Return all figures of the draws; `followed` is the estimator of which one sample is the unit of `samples`."""
    square = moments.estimate(lambda products: {"square": products.product(truth, truth)})["square"].value
    rows = []
    for name in moments.names:
        found = moments.estimate(lambda products, name=name: _figures(products, name, truth, followed))  # type: ignore[misc]
        rows.append(_row(name, found))
    return Measurement(
        moments.num_draws, math.sqrt(max(square, 0.0)), gradient_error(moments, truth), truth, tuple(rows)
    )


def _row(name: str, found: Mapping[str, Figure]) -> EstimatorRow:
    return EstimatorRow(
        name=name,
        unbiased=name in UNBIASED,
        variance=found["variance"],
        bias_square=found["bias_square"],
        cosine=found["cosine"],
        errors=tuple(found[f"error_{samples}"].value for samples in SAMPLES),
        alignments=tuple(found[f"alignment_{samples}"].value for samples in SAMPLES),
        samples=found["samples"],
        aligned_samples=found["aligned_samples"],
    )


def _figures(products: Products, name: str, truth: str, followed: str) -> Figures:
    """Return one estimator's figures in units of the true gradient's length.

    The errors of an unbiased estimator are those of bias 0: what was measured of it is noise.
    """
    length = products.product(truth, truth)
    variance = _ratio(products.variance(name), length)
    bias_square = _ratio(products.difference(name, truth), length)
    # Without noise, as of ever more samples: the cosine of the means.
    figures = {"variance": variance, "bias_square": bias_square, "cosine": _cosine(products, name, truth, 0.0)}
    for samples in SAMPLES:
        figures[f"error_{samples}"] = _error(products, name, truth, samples)
        figures[f"alignment_{samples}"] = _alignment(products, name, truth, samples)
    if name == followed:
        return figures | {"samples": 1.0, "aligned_samples": 1.0}
    # cos² of an unbiased estimator is 1 / (1 + v / M), v being its variance: solved for the M at which it is `aim`.
    aim = max(_alignment(products, followed, truth, 1), 0.0) ** 2
    return figures | {
        "samples": _ratio(variance, _error(products, followed, truth, 1)),
        "aligned_samples": _ratio(variance * aim, 1 - aim),
    }


def _error(products: Products, name: str, truth: str, samples: int) -> float:
    """‖b‖² + tr Cov / M, over ‖∇V‖²; the bias of an unbiased estimator is 0."""
    # What was measured of a bias that is 0 is noise, and would be counted as error.
    bias_square = 0.0 if name in UNBIASED else max(products.difference(name, truth), 0.0)
    return _ratio(bias_square + products.variance(name) / samples, products.product(truth, truth))


def _alignment(products: Products, name: str, truth: str, samples: int) -> float:
    """<E g, ∇V> / (‖∇V‖ √E‖g‖²): what is left of the cosine when the noise of M samples counts as length."""
    # The mean of an unbiased one is the truth: as it was measured it would bring noise in.
    return _cosine(products, truth if name in UNBIASED else name, truth, products.variance(name) / samples)


def _cosine(products: Products, name: str, truth: str, noise: float) -> float:
    square = (products.product(name, name) + noise) * products.product(truth, truth)
    # Estimated squares may be negative where all is noise: then there is no cosine to tell.
    return _ratio(products.product(name, truth), math.sqrt(square)) if square > 0 else math.nan


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan
