"""Bring a model folder of 0.1 to this version; what is converted already stays as it is.

    python benchmarks/convert_0_1.py                  # the packaged models
    python benchmarks/convert_0_1.py FOLDER [FOLDER]  # others

What moved: vocabularies became a codec, some settings and tensors have the field's own names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import safetensors.torch

import seqcritic
from seqcritic.files import FIELD, digest, seal, write_synced, write_whole

PACKAGED = Path(seqcritic.__file__).parent / "pretrained"
DESCRIPTION = "description.json"
SETTINGS = {
    ("critic", "adds_outlook"): "residual_on",
    ("actor", "read_out"): "output_width",
    ("critic", "read_out"): "output_width",
}
GONE = (("training", "tensorboard"),)  # training.tracker names it now
TENSORS = {"decoder.glimpse_gates.": "decoder.context_gates.", "decoder.read_out.": "decoder.output_layer."}


def convert(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description in the form of this version, sealed if it was; its fields stay in their order."""
    converted: dict[str, Any] = {}
    for name, value in description.items():
        if name == "vocabularies":
            converted["codec"] = _codec(value, description["settings"]["data"])
        elif name == "settings":
            converted[name] = _settings(value)
        else:
            converted[name] = value
    return seal(converted) if FIELD in description else converted


def _codec(vocabularies: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a codec: 0.1 stored vocabularies, and for spelling nothing."""
    if data.get("task", "spelling") == "spelling":
        return {"kind": "spelling", "length": data["length"]}
    return {"kind": "text", **vocabularies}


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with the names of this version, each in its old place."""
    renamed = {
        section: {
            SETTINGS.get((section, key), key): value for key, value in content.items() if (section, key) not in GONE
        }
        if isinstance(content, dict)
        else content
        for section, content in settings.items()
    }
    if isinstance(renamed.get("critic", {}).get("residual_on"), bool):
        renamed["critic"]["residual_on"] = "lookahead" if renamed["critic"]["residual_on"] else "none"
    return renamed


def convert_tensors(content: bytes) -> bytes:
    """Return a safetensors file with the names of this version; the numbers are not touched."""
    tensors = safetensors.torch.load(content)
    renamed = {_tensor_name(name): tensor for name, tensor in tensors.items()}
    return content if list(renamed) == list(tensors) else safetensors.torch.save(renamed)


def _tensor_name(name: str) -> str:
    for old, new in TENSORS.items():
        name = name.replace(old, new)
    return name


def convert_folder(folder: Path) -> bool:
    """Convert a folder in place and tell whether anything has changed."""
    path = folder / DESCRIPTION
    before = path.read_text(encoding="utf-8")
    description = json.loads(before)
    for name in description.get("digests", {}):
        tensors = folder / f"{name}.safetensors"
        content = tensors.read_bytes()
        converted = convert_tensors(content)
        if converted != content:
            write_synced(tensors, converted)
            description["digests"][name] = digest(converted)
    # Lines as they were: indented by one space, the last one without its end.
    after = json.dumps(convert(description), indent=1) + "\n" * before.endswith("\n")
    if after != before:
        write_whole(path, after)
    return after != before


def main(folders: list[str]) -> None:
    """Convert all folders and say which have changed."""
    for folder in map(Path, folders or sorted(PACKAGED.iterdir())):
        if (folder / DESCRIPTION).is_file():
            print(f"{folder}: {'converted' if convert_folder(folder) else 'the same'}")


if __name__ == "__main__":
    main(sys.argv[1:])
