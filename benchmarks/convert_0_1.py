"""Bring the description of a model folder of 0.1 to this version; what is converted already stays as it is.

python benchmarks/convert_0_1.py                  # the packaged models
python benchmarks/convert_0_1.py FOLDER [FOLDER]  # others
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import seqcritic
from seqcritic.files import FIELD, seal, write_whole

PACKAGED = Path(seqcritic.__file__).parent / "pretrained"
DESCRIPTION = "description.json"


def convert(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description in the form of this version, sealed if it was; its fields stay in their order."""
    converted: dict[str, Any] = {}
    for name, value in description.items():
        if name == "vocabularies":
            converted["codec"] = _codec(value, description["settings"]["data"])
        else:
            converted[name] = value
    return seal(converted) if FIELD in description else converted


def _codec(vocabularies: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a codec: 0.1 stored vocabularies, and for spelling nothing."""
    if data.get("task", "spelling") == "spelling":
        return {"kind": "spelling", "length": data["length"]}
    return {"kind": "text", **vocabularies}


def main(folders: list[str]) -> None:
    """Convert the descriptions of all folders and say which have changed."""
    for folder in map(Path, folders or sorted(PACKAGED.iterdir())):
        path = folder / DESCRIPTION
        if not path.is_file():
            continue
        before = path.read_text(encoding="utf-8")
        # Lines as they were: indented by one space, the last one without its end.
        after = json.dumps(convert(json.loads(before)), indent=1) + "\n" * before.endswith("\n")
        if after != before:
            write_whole(path, after)
        print(f"{path}: {'the same' if after == before else 'converted'}")


if __name__ == "__main__":
    main(sys.argv[1:])
