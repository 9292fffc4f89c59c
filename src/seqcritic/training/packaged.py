"""Models that come with the package: folders below `pretrained/`, known by their names."""

from __future__ import annotations

from pathlib import Path

from seqcritic.errors import UserError

PRETRAINED = Path(__file__).parents[1] / "pretrained"
CARD_FILE = "MODEL_CARD.md"


def packaged_names() -> list[str]:
    """Return the names of the packaged models."""
    return sorted(path.parent.name for path in PRETRAINED.glob("*/description.json"))


def find_packaged(place: str | Path) -> Path | None:
    """Return the folder of the packaged model of this name, or None where there is none.

    Only a string can be a name: a Path, or a string with a slash, is always a place on disk. A name that is a place on
    disk too is refused, because either could be meant.
    """
    if not isinstance(place, str) or place not in packaged_names():
        return None
    if Path(place).exists():
        raise UserError(
            f"'{place}' is a packaged model and also a place in this folder; give ./{place} for the one in this "
            "folder, or give the command in another folder for the packaged one"
        )
    return PRETRAINED / place


def summary(name: str) -> str:
    """Return the first paragraph of a packaged model's card, on one line."""
    card = PRETRAINED / name / CARD_FILE
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return next((paragraph for paragraph in paragraphs if paragraph and not paragraph.startswith("#")), "")
