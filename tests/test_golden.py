"""Every method and mixture, with and without dropout, repeats its golden trajectory (benchmarks/golden.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import golden
from seqcritic.settings.methods import MIXED, method_labels


def cases() -> Iterator[Any]:
    """Yield every label with every dropout; of mixtures, whose parts are held alone, that without dropout is slow."""
    for label in method_labels():
        for dropout in golden.DROPOUTS:
            slow = label.endswith(MIXED) and not dropout
            yield pytest.param(label, dropout, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("label", "dropout"), list(cases()))
def test_the_trajectory_is_what_it_was(label: str, dropout: float):
    expected = json.loads(golden.path_of(label, dropout).read_text(encoding="utf-8"))
    assert len(expected["updates"]) >= 40
    assert not list(golden.differences(expected, golden.trajectory(label, dropout)))


def test_the_comparison_notices_a_change():
    expected = {"updates": [{"loss": 1.0}], "weights": {"w": [1.0, 2.0]}}
    changes = (
        {"updates": [{"loss": 1.0 + 1e-8}], "weights": {"w": [1.0, 2.0]}},
        {"updates": [{"loss": float("nan")}], "weights": {"w": [1.0, 2.0]}},
        {"updates": [{"loss": 1.0}], "weights": {"w": [1.0]}},
        {"updates": [], "weights": {"w": [1.0, 2.0]}},
        {"updates": [{"other": 1.0}], "weights": {"w": [1.0, 2.0]}},
    )
    assert not list(golden.differences(expected, {"updates": [{"loss": 1.0 + 1e-10}], "weights": {"w": [1.0, 2.0]}}))
    for changed in changes:
        assert len(list(golden.differences(expected, changed))) == 1
