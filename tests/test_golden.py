"""Every method and mixture, with and without dropout, repeats its golden trajectory (benchmarks/golden.py)."""

from __future__ import annotations

import json

import pytest

import golden
from seqcritic.settings.methods import method_labels


@pytest.mark.parametrize("dropout", golden.DROPOUTS)
@pytest.mark.parametrize("label", method_labels())
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
