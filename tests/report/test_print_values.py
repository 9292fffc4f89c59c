"""The table is printed in any encoding."""

from __future__ import annotations

import io

import pytest

from seqcritic.report.terminal import print_values
from seqcritic.report.values import END, Candidate, Step, ValueTable


@pytest.mark.parametrize(("encoding", "end"), [("utf-8", "∅(1.500)"), ("ascii", "?(1.500)")])
def test_any_encoding_will_do(encoding: str, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    best = (Candidate(END, 1.5, 0.5),)
    step = Step(END, 0.5, 1.5, 0.0, best, best, (1.0,), (1.0,))
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=encoding, write_through=True))
    print_values(ValueTable((END,), (END,), (step,), "", "any", "title", ""))
    assert end in written.getvalue().decode(encoding)
