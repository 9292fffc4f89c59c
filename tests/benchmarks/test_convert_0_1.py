"""Descriptions of 0.1 are brought to this version once, and what is converted already stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from convert_0_1 import PACKAGED, convert, convert_folder, main
from seqcritic.contracts.codec import codec_from_dict
from seqcritic.data.tokens import WordVocabulary
from seqcritic.files import digest, seal, unseal

WORDS = WordVocabulary("words", False, ["a", "b"]).to_dict()
SPELLING: dict[str, Any] = {"settings": {"data": {"task": "spelling", "length": 7}}, "vocabularies": {}, "data": "x"}
TRANSLATION: dict[str, Any] = {
    "settings": {"data": {"task": "translation"}},
    "vocabularies": {"source": WORDS, "target": WORDS},
}


@pytest.mark.parametrize(("old", "kind"), [(SPELLING, "spelling"), (TRANSLATION, "text")])
def test_the_codec_stands_in_the_place_of_the_vocabularies(old: dict[str, Any], kind: str):
    new = convert(old)
    assert list(new) == ["codec" if name == "vocabularies" else name for name in old]
    assert codec_from_dict(new["codec"]).to_dict() == new["codec"]
    assert new["codec"]["kind"] == kind
    assert convert(new) == new


def test_what_was_sealed_is_sealed_again():
    assert "codec" in unseal(convert(seal(SPELLING)), required=True)


def test_a_folder_is_converted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "description.json"
    path.write_text(json.dumps(SPELLING, indent=1))
    main([str(tmp_path)])
    converted = path.read_text()
    main([str(tmp_path)])
    assert path.read_text() == converted
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()] == ["converted", "the same"]


def test_what_is_packaged_has_been_converted():
    for path in PACKAGED.glob("*/description.json"):
        stored = json.loads(path.read_text())
        assert convert(stored) == stored
        codec_from_dict(stored["codec"])


def test_settings_and_tensors_have_their_new_names_and_their_old_values(tmp_path: Path):
    settings = {"data": {"task": "spelling", "length": 7}, "actor": {"hidden": 3, "read_out": 4}, "name": "old"}
    tensors = {"decoder.read_out.weight": torch.rand(2, 3), "decoder.glimpse_gates.bias": torch.rand(4)}
    content = safetensors.torch.save(tensors)
    (tmp_path / "actor.safetensors").write_bytes(content)
    old = {"settings": settings, "vocabularies": {}, "digests": {"actor": digest(content)}}
    (tmp_path / "description.json").write_text(json.dumps(seal(old), indent=1))
    assert convert_folder(tmp_path)
    assert not convert_folder(tmp_path)
    found = unseal(json.loads((tmp_path / "description.json").read_text()), required=True)
    assert found["settings"]["actor"] == {"hidden": 3, "output_width": 4}
    stored = (tmp_path / "actor.safetensors").read_bytes()
    assert found["digests"]["actor"] == digest(stored)
    renamed = safetensors.torch.load(stored)
    assert torch.equal(renamed["decoder.output_layer.weight"], tensors["decoder.read_out.weight"])
    assert torch.equal(renamed["decoder.context_gates.bias"], tensors["decoder.glimpse_gates.bias"])
