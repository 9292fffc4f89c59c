"""The text of the spelling study: all English of a folder of corpora, in one tokenisation, split by a hash of the line.

    python benchmarks/evidence/spelling_text.py CORPORA OUT

CORPORA holds the folders named in SOURCES. OUT receives train.txt, valid.txt and test.txt, which share no sentence
with each other nor with news.txt, the One Billion Word test sentences. Raw text is split into words by the package's
own rules, which put spaces where One Billion Word has them; a sentence that occurs twice is kept once. Which split a
sentence falls into depends on the sentence alone.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from seqcritic.data.vocabulary import normalise_spelling, spelling_table
from seqcritic.data.words import split_words

SOURCES = {  # file: whether it is raw text
    "one-billion-word/train.txt.gz": False,
    "newswire/train.txt.gz": True,
    "europarl-de-en/train.en.gz": True,
    "europarl-en-fr/train.en.gz": True,
    "tatoeba-de-en/train.en.gz": True,
    "tatoeba-en-fr/train.en.gz": True,
}
NEWS = "one-billion-word/test.txt.gz"
SHARE = 200  # one sentence in so many goes to valid, and as many to test


def main() -> None:
    """Write the four files and print their sizes."""
    corpora, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    table = spelling_table()
    news = list(_lines(corpora / NEWS))
    seen = {normalise_spelling(line, table) for line in news}
    (out / "news.txt").write_text("".join(f"{line}\n" for line in news), encoding="utf-8")
    counts = {"train": 0, "valid": 0, "test": 0}
    files = {split: (out / f"{split}.txt").open("w", encoding="utf-8") for split in counts}
    for name, is_raw in SOURCES.items():
        for line in _lines(corpora / name):
            text = normalise_spelling(" ".join(split_words(line)) if is_raw else line, table)
            if not text or text in seen:
                continue
            seen.add(text)
            split = _split_of(text)
            counts[split] += 1
            files[split].write(f"{text}\n")
        print(f"{name}: so far {counts}", flush=True)
    for file in files.values():
        file.close()
    print(f"news: {len(news)} sentences")


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield line.strip()


def _split_of(text: str) -> str:
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % SHARE
    return {0: "valid", 1: "test"}.get(number, "train")


if __name__ == "__main__":
    main()
