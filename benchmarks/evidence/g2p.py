"""Trained models of pronunciation on the test words: phoneme and word error rates, as a small file.

    python benchmarks/evidence/g2p.py "likelihood=RUN" "actor-critic=RUN,RUN,RUN" "three together=RUN+RUN+RUN" \\
        --out docs/results/g2p/models.json

Runs with commas between them are seeds of one row: rates are means, intervals are over words, and the rates of single
seeds stand beside. Runs with + between them are an ensemble. Each is searched greedily, with a beam of 10 and by
minimum Bayes risk over 32 samples. `--split valid` judges by the words that things are chosen on.

A word is right if it is any of its pronunciations; its phoneme errors are those to the nearest pronunciation, the
longest of several, and the rate is their sum over the sum of those pronunciations' lengths.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqcritic.contracts.score import Array, References
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
from seqcritic.decoding.search import GREEDY, AnySearch, Search
from seqcritic.evaluation.bootstrap import interval
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.exact_match import ExactMatch
from seqcritic.training.environment import environment
from seqcritic.training.model import load_model

SEARCHES: dict[str, AnySearch] = {
    "greedy": GREEDY,
    "beam 10": Search(width=10),
    "MBR 32": MinimumBayesRisk(samples=32),
}
PHONEMES = EditDistanceScore(split=str.split, rules="whitespace")
WORDS = ExactMatch()


def evaluate(
    title: str, search: str, predictions: Sequence[Sequence[str]], references: Sequence[References]
) -> dict[str, Any]:
    """Return a row: both rates, in percent, of predictions of the same words by one or several seeds."""
    phonemes = [PHONEMES.statistics(each, references) for each in predictions]
    words = [WORDS.statistics(each, references) for each in predictions]
    low, high = interval(words, WORDS)
    return {
        "title": title,
        "search": search,
        "words": len(references),
        "per": round(_mean(phonemes, PHONEMES), 3),
        "per_interval": [round(end, 3) for end in interval(phonemes, PHONEMES)],
        "wer": round(100 - _mean(words, WORDS), 3),
        "wer_interval": [round(100 - end, 3) for end in (high, low)],
        "seeds": [
            {"per": round(float(PHONEMES.of_totals(one.sum(axis=0))), 3), "wer": round(100 - _mean([other], WORDS), 3)}
            for one, other in zip(phonemes, words, strict=True)
        ],
    }


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows with what they were made by, a line each."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"environment": {json.dumps(environment())}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def _mean(runs: Sequence[Array], score: EditDistanceScore | ExactMatch) -> float:
    return float(np.mean([score.of_totals(run.sum(axis=0)) for run in runs]))


def main() -> None:
    """Evaluate, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="TITLE=RUN")
    parser.add_argument("--split", choices=("valid", "test"), default="test")
    parser.add_argument("--search", action="append", choices=tuple(SEARCHES), help="this one alone; may be repeated")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    rows = []
    for title, _, places in (given.rpartition("=") for given in options.runs):
        models = [load_model(place.split("+")) for place in places.split(",")]
        words = models[0].task.evaluation_set(options.split)
        for search in options.search or SEARCHES:
            start = time.perf_counter()
            predictions = [model.predict(words.sources, SEARCHES[search]) for model in models]
            speed = round(len(models) * len(words.sources) / (time.perf_counter() - start))
            row = evaluate(title, search, predictions, words.all_references)
            print(f"{title:40} {search:8}  PER {row['per']:6.3f}  WER {row['wer']:6.3f}", flush=True)
            rows.append(row | {"split": options.split, "words_per_second": speed})
    write_rows(options.out, rows)


if __name__ == "__main__":
    main()
