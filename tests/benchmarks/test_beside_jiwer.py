"""The corpus error rate is jiwer's without the strip: spaces at the ends of a sentence count."""

from __future__ import annotations

import jiwer
import pytest

from beside_jiwer import unstripped_rate
from seqcritic.scores.edit_distance import EditDistanceScore

REFERENCES = ["the cat ", " sat on", "a mat"]
PREDICTIONS = ["the catx", " sat in ", "a m t"]


def test_spaces_at_the_ends_count():
    totals = EditDistanceScore().statistics(PREDICTIONS, REFERENCES).sum(axis=0)
    ours = EditDistanceScore().of_totals(totals)
    assert ours == pytest.approx(100 * 4 / 20)
    assert ours == pytest.approx(unstripped_rate(REFERENCES, PREDICTIONS))
    assert abs(ours - 100 * jiwer.cer(REFERENCES, PREDICTIONS)) > 1
