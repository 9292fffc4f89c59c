"""Links of pages to files outside the documentation, which work where the pages are read as files."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1].resolve()


def to_files_of_the_repository(app: object, name: str, source: list[str]) -> None:
    """Leave of a link to a file of the repository the name alone: the site has the pages and not the code."""
    folder = (DOCS / name).parent

    def settle(link: re.Match[str]) -> str:
        text, target = link[1], link[2]
        path = (folder / target.partition("#")[0]).resolve()
        inside = path.is_relative_to(DOCS)
        return link[0] if inside or "://" in target or target.startswith(("#", "mailto:")) else text

    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", settle, source[0])
