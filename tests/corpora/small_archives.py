"""Small archives in the format of the original ones."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from seqcritic.corpora.prepare import Prepared, prepare, summary

TRAIN_DE = """\
<url>http://www.ted.com/talks/jane_doe_on_trees.html</url>
<keywords>trees, talks</keywords>
<speaker>Jane Doe</speaker>
<talkid>7</talkid>
<title>Jane Doe: Über Bäume &amp; Wälder</title>
<description>TED Talk: Sie sagt, „Bäume“ seien schön.</description>
 Vielen Dank, Chris. 
Das war z. B. Nummer 5.

Ja.
"""
TRAIN_EN = """\
<url>http://www.ted.com/talks/jane_doe_on_trees.html</url>
<keywords>trees, talks</keywords>
<speaker>Jane Doe</speaker>
<talkid>7</talkid>
<title>Jane Doe: On trees &amp; woods</title>
<description>TED Talk: "Trees" are nice, she says.</description>
 Thank you so much, Chris. 
That was e.g. number 5.
This one has no translation.
Well, I don't know [what] to say.
"""


def talk(*segments: str) -> str:
    """Return an evaluation file of one talk."""
    lines = [f'<seg id="{number}"> {segment} </seg>' for number, segment in enumerate(segments, start=1)]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<mteval><srcset setid="iwslt2014" srclang="german">',
            '<doc docid="69" genre="lectures">',
            "<keywords>talks</keywords>",
            "<title>Left out</title>",
            *lines,
            "</doc></srcset></mteval>",
            "",
        ]
    )


def iwslt_files(train_de: str = TRAIN_DE, train_en: str = TRAIN_EN) -> dict[str, str]:
    """Return the files of de-en.tgz by name."""
    files = {"de-en/train.tags.de-en.de": train_de, "de-en/train.tags.de-en.en": train_en, "de-en/README": "read me\n"}
    # In another order than that of the test set, which has dev2012 from TEDx.
    for name in ("TED.tst2012", "TED.tst2011", "TED.tst2010", "TEDX.dev2012", "TED.dev2010", "TEDX.tst2013"):
        number = name[-7:]
        files[f"de-en/IWSLT14.{name}.de-en.de.xml"] = talk(f"Das ist {number}’s Satz.", "Noch einer")
        files[f"de-en/IWSLT14.{name}.de-en.en.xml"] = talk(f"This is {number}’s sentence.", "Another one")
    return files


def write_tar(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a tar archive, gzipped unless its name ends in .tar."""
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files under a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def lines_of(path: Path) -> list[str]:
    """Return the lines of a plain or gzipped file."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode().splitlines()


def text(lines: Sequence[str]) -> str:
    """Return lines as the content of a file."""
    return "".join(f"{line}\n" for line in lines)


def prepare_here(name: str, out: Path, source: Path | None) -> Prepared:
    """Prepare without a word."""
    return prepare(name, out, source)


def printed(prepared: Prepared) -> str:
    """Return what the command prints."""
    return "\n".join(summary(prepared))
