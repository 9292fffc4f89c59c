"""What is public can be had."""

from __future__ import annotations

import pytest

import seqcritic


@pytest.mark.parametrize("name", seqcritic.__all__)
def test_every_public_name_is_found(name: str):
    if name == "HuggingFaceActor":
        pytest.importorskip("transformers")
    assert getattr(seqcritic, name) is not None


def test_an_unknown_name_is_told():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        seqcritic.trian  # noqa: B018
