"""Figures of two commits beside each other."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import beside_commit


def row(claim: str, measured: float, sense: str = "at least", threads: int = 1) -> dict[str, Any]:
    return {"claim": claim, "measured": measured, "sense": sense, "threads": threads, "unit": "×"}


def test_better_is_above_one_whichever_way_the_claim_goes() -> None:
    before = [
        row("update, against Joey", 2.0),
        row("update", 1.0, threads=2),
        row("cost", 3.0, "at most"),
        row("gone", 1.0),
    ]
    after = [
        row("update, against Eole", 1.5),
        row("update", 2.0, threads=2),
        row("cost", 2.0, "at most"),
        row("new", 1.0),
    ]
    found = beside_commit.compare(before, after)
    assert [(each["claim"], each["threads"]) for each in found] == [
        ("update, against Joey", 1),
        ("update", 2),
        ("cost", 1),
    ]
    assert [each["better"] for each in found] == pytest.approx([0.75, 2.0, 1.5])


def test_what_became_slower_than_is_allowed_is_marked() -> None:
    rows = beside_commit.compare([row("a", 1.0), row("b", 1.0)], [row("a", 0.96), row("b", 0.94)])
    marked = [line for line in beside_commit.table(rows).splitlines() if "(slower)" in line]
    assert [line[:5] for line in marked] == ["| b |"]


def test_a_report_is_made_once_and_never_half(tmp_path: Path) -> None:
    scripts = tmp_path / "benchmarks"
    scripts.mkdir()
    options = argparse.Namespace(effort=0.0, folder=tmp_path)
    path = tmp_path / "before-x.json"
    (scripts / "bench.py").write_text("raise SystemExit(1)")
    with pytest.raises(Exception, match="exit status 1"):
        beside_commit.report(tmp_path, Path(sys.executable), "x", path, options)
    assert not path.exists()
    written = json.dumps({"rows": [row("x", 1.0)]})
    (scripts / "bench.py").write_text(
        f"import sys; open(sys.argv[sys.argv.index('--out') + 1], 'w').write({written!r})"
    )
    first = beside_commit.report(tmp_path, Path(sys.executable), "x", path, options)
    (scripts / "bench.py").write_text("raise SystemExit(1)")
    assert beside_commit.report(tmp_path, Path(sys.executable), "x", path, options) == first == [row("x", 1.0)]
