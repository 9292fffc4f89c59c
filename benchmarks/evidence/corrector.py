"""Correctors on real misspellings in running text, in one run: a model, SymSpell, pyspellchecker, and doing nothing.

    python benchmarks/evidence/corrector.py TEXT … --peers PYTHON [--model RUN --valid TEXT] --out FILE.json

TEXT is a file of lines as they were typed and as they should be: `typed TAB right`, or with errors marked as in
Holbrook's essays, `My <ERR targ=sister> siter </ERR> goes`. PYTHON is the interpreter of an environment with
`pip install symspellpy pyspellchecker` (6.10.1 and 0.9.1 here; the second takes minutes for a thousand lines). With a
model its `margin` is chosen on the file `--valid`, which must not be one of the texts, by the word error rate there.

For each: the word error rate of what comes out against the right text, words being compared without case and without
the marks around them; the share of words that are changed where the right text itself is given; words a second, the
start of the process included.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from seqcritic.training.environment import environment
from seqcritic.training.model import load_model

WORKER = Path(__file__).parents[1] / "peers" / "speller_worker.py"
NOTHING = "nothing"
MARGINS = (None, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
_MARKED = re.compile(r"<ERR\s+targ=([^>]*)>\s*(.*?)\s*</ERR>")
_AROUND = re.compile(r"^\W+|\W+$")
Corrector = Callable[[Sequence[str]], list[str]]


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return lines as they were typed and as they should be."""
    pairs = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if "\t" in line:
            typed, right = line.split("\t")[:2]
        else:
            typed, right = _MARKED.sub(r"\2", line), _MARKED.sub(r"\1", line)
        if words_of(right):
            pairs.append((typed, right))
    return pairs


def words_of(line: str) -> list[str]:
    """Return the words that are compared: in lower case, without marks around them."""
    return [word for part in line.lower().split() if (word := _AROUND.sub("", part))]


def word_error_rate(found: Sequence[str], right: Sequence[str]) -> float:
    """Return the edits between words over the words that should be there, in percent."""
    pairs = [(words_of(line), words_of(wanted)) for line, wanted in zip(found, right, strict=True)]
    return 100 * sum(Levenshtein.distance(*pair) for pair in pairs) / sum(len(wanted) for _, wanted in pairs)


def peer(python: str, name: str) -> Corrector:
    """Return a corrector that another environment has."""

    def correct(lines: Sequence[str]) -> list[str]:
        said = subprocess.run(
            [python, str(WORKER), name], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True
        )
        return said.stdout.split("\n")[:-1]

    return correct


def tuned_model(run: str, valid: Sequence[tuple[str, str]]) -> tuple[str, Corrector]:
    """Return a model's corrector, and its name, with the margin that is best on valid."""
    model = load_model(run)
    typed, right = ([pair[side] for pair in valid] for side in (0, 1))
    rates = {margin: word_error_rate(model.predict(typed, margin=margin), right) for margin in MARGINS}
    best = min(rates, key=lambda margin: rates[margin])
    return f"{Path(run).name}, margin {best}", lambda lines: model.predict(lines, margin=best)


def evaluate(name: str, correct: Corrector, pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Return a row."""
    typed, right = ([pair[side] for pair in pairs] for side in (0, 1))
    start = time.perf_counter()
    found = correct(typed)
    seconds = time.perf_counter() - start
    return {
        "corrector": name,
        "word_error_rate": round(word_error_rate(found, right), 3),
        "clean_words_changed": round(word_error_rate(correct(right), right), 3),
        "words_per_second": None if name == NOTHING else round(sum(map(len, map(str.split, typed))) / seconds),
    }


def main() -> None:
    """Evaluate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path, metavar="TEXT")
    parser.add_argument("--peers", required=True, metavar="PYTHON")
    parser.add_argument("--model", metavar="RUN")
    parser.add_argument("--valid", type=Path, metavar="TEXT", help="where the model's margin is chosen")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    if options.model and (options.valid is None or options.valid in options.texts):
        parser.error("--model needs --valid, another text than those it is judged by")
    correctors: dict[str, Corrector] = {NOTHING: list}
    correctors |= {name: peer(options.peers, name) for name in ("symspell", "pyspellchecker")}
    if options.model:
        name, correct = tuned_model(options.model, read_pairs(options.valid))
        correctors[name] = correct
    rows = []
    for text in options.texts:
        pairs = read_pairs(text)
        for name, correct in correctors.items():
            row = {"text": text.name, "lines": len(pairs), **evaluate(name, correct, pairs)}
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            rows.append(row)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    content = {"environment": environment(), "rows": rows}
    options.out.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
