"""The hashes by which `seqcritic prepare cmudict` knows the published split, from its files.

    python benchmarks/cmudict_split.py FOLDER            # write src/seqcritic/corpora/cmudict-split.safetensors anew
    python benchmarks/cmudict_split.py FOLDER --check    # leave with 1 where the file is not what the split says

FOLDER has train.tsv, valid.tsv and test.tsv, plain or .gz, with lines `word TAB phonemes`, a line for each
pronunciation. No word of one set may be taken for one of another: that is checked of all words before writing.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from seqcritic.corpora.cmudict import GAP_BYTES, HELD_OUT, SPLIT_FILE, HashedTexts, entry_text, hash_bits, hash_text


def read_split(folder: Path, name: str) -> dict[str, list[str]]:
    """Return the words of a set with their pronunciations."""
    plain = folder / f"{name}.tsv"
    text = (
        plain.read_text(encoding="utf-8")
        if plain.is_file()
        else gzip.decompress(plain.with_name(f"{name}.tsv.gz").read_bytes()).decode()
    )
    words: dict[str, list[str]] = {}
    for line in text.splitlines():
        word, phonemes = line.split("\t")
        words.setdefault(word, []).append(phonemes)
    return words


def hash_gaps(texts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return the hashes of different texts as `HashedTexts` reads them, [N, 3]."""
    different = set(texts)
    hashes = sorted(hash_text(text, hash_bits(len(different))) for text in different)
    gaps = np.diff(np.array(hashes, np.int64), prepend=0)
    if gaps[1:].min() == 0 or gaps.max() >= 1 << (8 * GAP_BYTES):
        raise SystemExit("two texts share a hash, or two hashes are too far apart: hash_bits must change")
    return np.stack([(gaps >> (8 * place)) & 255 for place in range(GAP_BYTES)], axis=1).astype(np.uint8)


def hash_split(folder: Path) -> dict[str, npt.NDArray[np.uint8]]:
    """Return all hashes of a published split."""
    train = read_split(folder, "train")
    hashed = {"train.lines": hash_gaps(f"{word}\t{each}" for word, own in train.items() for each in own)}
    for name in HELD_OUT:
        words = read_split(folder, name)
        hashed[f"{name}.words"] = hash_gaps(words)
        hashed[f"{name}.entries"] = hash_gaps(entry_text(*entry) for entry in words.items())
        known = HashedTexts(hashed[f"{name}.words"])
        others = {word for other in ("train", *HELD_OUT) if other != name for word in read_split(folder, other)}
        if taken := [word for word in others if word in known]:
            raise SystemExit(f"words of other sets would be taken for {name}: {', '.join(sorted(taken)[:5])}")
    return hashed


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    content = save(hash_split(options.folder))
    if options.check:
        return int(content != SPLIT_FILE.read_bytes())
    SPLIT_FILE.write_bytes(content)
    print(f"{SPLIT_FILE.name}: {len(content):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
