"""Checks of where the cache is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqcritic.files import default_cache_directory


def test_default_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert default_cache_directory() == tmp_path / "own"
    monkeypatch.delenv("SEQCRITIC_CACHE")
    assert default_cache_directory() == tmp_path / "shared" / "seqcritic"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert default_cache_directory() == tmp_path / ".cache" / "seqcritic"
