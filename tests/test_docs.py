"""The worked example of docs/scores.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seqcritic.scores.shared.function import FunctionScore, load_function, try_on

PAGE = Path(__file__).parents[1] / "docs" / "scores.md"


def test_the_example_function_is_a_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "headline_scores.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    headline = load_function("headline_scores:headline")
    assert headline("cat sat", "the cat sat") == pytest.approx(2 / 3)
    assert headline("the cat sat down now", "the cat sat") == pytest.approx(1 - 0.2)
    assert headline("", "the cat sat") == 0
    try_on(FunctionScore(headline), [("", ("the cat sat",))])
