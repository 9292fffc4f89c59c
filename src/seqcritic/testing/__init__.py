"""Worlds that can be enumerated, to test estimators, critics and methods of one's own (docs/own/estimator.md).

`make_world` enumerates all that an actor can say: exact values, exact gradients and optimal completions follow.
`assert_unbiased` compares an estimator's expectation with the exact gradient. Nothing here needs a test framework.
"""

from seqcritic.testing.branches import Branches
from seqcritic.testing.critics import TabularCritic, random_values, wrong_values
from seqcritic.testing.exact_moments import ExactMoments, TabularStateValues
from seqcritic.testing.unbiased import Estimator, assert_unbiased, expected_gradients, method_estimator
from seqcritic.testing.worlds import (
    Draw,
    World,
    all_sequences,
    gradients,
    largest_difference,
    make_actor,
    make_batch,
    make_world,
)

__all__ = [
    "Branches",
    "Draw",
    "Estimator",
    "ExactMoments",
    "TabularCritic",
    "TabularStateValues",
    "World",
    "all_sequences",
    "assert_unbiased",
    "expected_gradients",
    "gradients",
    "largest_difference",
    "make_actor",
    "make_batch",
    "make_world",
    "method_estimator",
    "random_values",
    "wrong_values",
]
