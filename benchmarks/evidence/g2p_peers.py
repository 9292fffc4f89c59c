"""What a user would install, on the same test words: g2p-en's network and espeak-ng, as a small file.

    python benchmarks/evidence/g2p_peers.py data/cmudict/test.jsonl --g2p-en PYTHON --out docs/results/g2p/peers.json

PYTHON is the interpreter of an environment with `pip install g2p-en==2.1.0`; `espeak-ng` (1.51 here) is on the path.
Stress is left out of what both say. espeak-ng has phonemes of its own, finer in vowels than the dictionary's: they are
mapped by the table below, one way for each, so that some of its errors are the mapping's. Seconds are of the
whole process, its start included, beside whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from g2p import evaluate, write_rows

WORKER = Path(__file__).parents[1] / "peers" / "g2p_en_worker.py"
# The mnemonics of the voice en-us.
ESPEAK = {
    "p": "P", "b": "B", "t": "T", "t#": "T", "t2": "T", "?": "T", "d": "D", "k": "K", "x": "K", "g": "G", "f": "F",
    "v": "V", "T": "TH", "D": "DH", "s": "S", "z": "Z", "S": "SH", "Z": "ZH", "h": "HH", "tS": "CH", "dZ": "JH",
    "m": "M", "n": "N", "n-": "AH N", "N": "NG", "l": "L", "l#": "L", "@L": "AH L", "r": "R", "r-": "R", "w": "W",
    "j": "Y", ";": "", "i": "IY", "i:": "IY", "I": "IH", "I2": "IH", "I#": "IH", "E": "EH", "a": "AE", "aa": "AE",
    "a#": "AH", "@": "AH", "@-": "AH", "V": "AH", "0": "AA", "A:": "AA", "O": "AO", "O:": "AO", "O2": "AO", "U": "UH",
    "u:": "UW", "eI": "EY", "aI": "AY", "OI": "OY", "aU": "AW", "oU": "OW", "3": "ER", "3:": "ER", "A@": "AA R",
    "O@": "AO R", "o@": "AO R", "U@": "UH R", "e@": "EH R", "i@": "IY AH", "i@3": "IH R", "aI3": "AY ER",
    "aI@": "AY AH",
}  # fmt: skip
STRESS = re.compile("[',%=]")


def read_espeak(line: str) -> str:
    """Return a word in espeak's phonemes, with _ between them, in those of the dictionary.

    Some words it says letter by letter, or as two, with a space between.
    """
    found = " ".join(ESPEAK[each] for each in re.split(r"[_\s]+", STRESS.sub("", line)) if each).split()
    # Before a vowel espeak says the r of a coloured vowel once more.
    return " ".join(
        each for place, each in enumerate(found) if each != "R" or place == 0 or found[place - 1] not in ("R", "ER")
    )


def run(command: Sequence[str], text: str) -> tuple[list[str], float]:
    """Return the lines that a command says to a text, and its seconds."""
    start = time.perf_counter()
    said = subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout
    return said.splitlines(), time.perf_counter() - start


def main() -> None:
    """Ask both, evaluate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", type=Path)
    parser.add_argument("--g2p-en", required=True, metavar="PYTHON")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    records = [json.loads(line) for line in options.words.read_text(encoding="utf-8").splitlines()]
    words, references = [record["source"] for record in records], [record["target"] for record in records]
    # A line between them ends the sentence: each word is said by itself.
    espeak, espeak_seconds = run(["espeak-ng", "-q", "-x", "--sep=_", "-v", "en-us", "--stdin"], "\n\n".join(words))
    network, network_seconds = run([options.g2p_en, str(WORKER)], "\n".join(words))
    answers = {
        "g2p-en 2.1.0, its network": ([re.sub(r"\d", "", line) for line in network], network_seconds),
        "espeak-ng, mapped": ([read_espeak(line.strip()) for line in espeak], espeak_seconds),
    }
    rows = []
    for title, (predictions, seconds) in answers.items():
        row = evaluate(title, "its own", [predictions], references)
        print(f"{title:30} PER {row['per']:6.3f}  WER {row['wer']:6.3f}  {len(words) / seconds:,.0f} words a second")
        rows.append(row | {"split": "test", "words_per_second": round(len(words) / seconds)})
    write_rows(options.out, rows)


if __name__ == "__main__":
    main()
