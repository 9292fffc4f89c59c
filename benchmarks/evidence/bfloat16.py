"""Whether `precision: bfloat16` learns what float32 learns: the demo with three seeds, Tatoeba by likelihood.

    python benchmarks/evidence/bfloat16.py FOLDER [--pairs TATOEBA] [--out docs/results/bfloat16.json]

Runs each of them in both precisions in FOLDER, one after the other; stopped at any time, the same command goes on, and
what is finished is not done again. TATOEBA has train, valid and test as .de.gz and .en.gz; without it the demo alone is
run. Written are the scores on test, the seconds of every run as its records tell them, and the fraction of test lines
that the model trained in float32 predicts alike with narrow products: with large matrices alone, and with all.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from seqcritic import evaluate, load_recipe, train
from seqcritic.models.products import bfloat16_products
from seqcritic.settings.io import with_method
from seqcritic.settings.tree import Settings
from seqcritic.training.environment import environment
from seqcritic.training.tracking import read_metrics

PRECISIONS = ("float32", "bfloat16")
SEEDS = (1, 2, 3)
DEMO_METHODS = ("likelihood", "actor-critic+likelihood")
TATOEBA_UPDATES = 8000


def run_demo(folder: Path) -> list[dict[str, Any]]:
    """Return a row for each method, seed and precision."""
    rows = []
    for label in DEMO_METHODS:
        for seed in SEEDS:
            for precision in PRECISIONS:
                settings = with_method(load_recipe("demo", {"seed": seed, "precision": precision}), label)
                place = folder / f"demo-{label}-{seed}-{precision}"
                rows.append({"task": "demo", "method": label, "seed": seed} | run_one(place, settings))
    return rows


def run_tatoeba(folder: Path, pairs: Path) -> list[dict[str, Any]]:
    """Return a row for each precision."""
    overrides: dict[str, Any] = {"method.name": "likelihood", "phases.train.updates": TATOEBA_UPDATES}
    for split in ("train", "valid", "test"):
        for side, language in (("source", "de"), ("target", "en")):
            overrides[f"data.{split}.{side}"] = [str(pairs / f"{split}.{language}.gz")]
    return [
        {"task": "tatoeba-de-en", "method": "likelihood", "seed": 1}
        | run_one(folder / f"tatoeba-{precision}", load_recipe("tatoeba-de-en", overrides | {"precision": precision}))
        for precision in PRECISIONS
    ]


def run_one(place: Path, settings: Settings) -> dict[str, Any]:
    """Train, or go on; return what is told of the run."""
    train(settings, place)
    found = evaluate(place)
    row = {
        "precision": settings.precision,
        "score_name": found.score_name,
        "score": found.score,
        "interval": found.interval,
        "signature": found.signature,
        "seconds": read_metrics(place)[-1]["seconds"],
    }
    return row | (agreement(place, found.predictions) if settings.precision == "float32" else {})


def agreement(place: Path, expected: list[str]) -> dict[str, float]:
    """Return the fractions of test lines that are predicted as in float32."""
    fractions = {}
    for name, large_alone in (("lines_alike_large_narrow", True), ("lines_alike_all_narrow", False)):
        with bfloat16_products(predicting=large_alone):
            found = evaluate(place).predictions
        fractions[name] = sum(one == other for one, other in zip(found, expected, strict=True)) / len(expected)
    return fractions


def main() -> None:
    """Run what is left to run, and write the file after every study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=Path, metavar="TATOEBA")
    parser.add_argument("--out", type=Path, default=Path("docs/results/bfloat16.json"))
    options = parser.parse_args()
    rows = run_demo(options.folder)
    write(options.out, rows)
    if options.pairs is not None:
        write(options.out, rows + run_tatoeba(options.folder, options.pairs))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the rows and where they come from."""
    command = "python benchmarks/evidence/bfloat16.py FOLDER --pairs TATOEBA"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"command": command, "environment": environment(), "rows": rows}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
