"""Sentences in the mark-up of evaluation campaigns: <seg> lines of .xml and .sgm files, and training text with tags.

Entities stay as they are: the published sets have `&amp;` of the archive as the tokens `&amp; amp ;`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from seqcritic.data.text import read_lines
from seqcritic.errors import UserError

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*)</seg>")
_PROSE_TAG = re.compile(r"</?(?:title|description)>")
_OTHER_TAG = re.compile(r"\s*<[a-z]+[ >]")


def read_segments(path: Path) -> Iterator[str]:
    """Yield the sentences between <seg> and </seg>, one a line."""
    for number, line in enumerate(read_lines(path, "source"), start=1):
        if "<seg " not in line:
            continue
        match = _SEGMENT.search(line)
        if match is None:
            raise UserError(f"source: {path}:{number}: <seg> without </seg> on the same line; fetch the file again")
        yield match.group(1).strip()


def read_tagged_sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a train.tags file.

    Titles and descriptions are sentences with a translation too and count as such in Ranzato's recipe; lines with any
    other tag (url, keywords, talkid, speaker) are dropped.
    """
    for line in read_lines(path, "source"):
        text = _PROSE_TAG.sub("", line)
        if not _OTHER_TAG.match(text):
            yield text.strip()
