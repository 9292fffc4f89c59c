"""What `seqcritic init` chooses beside a grid of six: widths and dropouts, on three sets of pairs that differ much.

    python benchmarks/evidence/init_grid.py --data DATA --out runs/init-grid [--sets words-3600 …] [--share 0.25] \
        [--precision bfloat16]

DATA has `cmudict-g2p/{train,valid,test}.tsv.gz` and `tatoeba-de-en/{train,valid,test}.{de,en}.gz`. For every set a
recipe is written by `init`, then the actor's pre-training, where sizes and regularisation matter, is run by the recipe
and at six points of width and dropout with the same schedule, on one thread; `--share` shortens the schedule of all
alike. Runs that are there are not run again, so that the same command goes on where it was stopped. The test score of
the choice should be within 10 % of the best of the grid, relative to the best. A table is printed; the figures are in
OUT/grid.json.
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import seqcritic
from seqcritic.data.parallel import read_pairs
from seqcritic.progress import log, set_up_logging
from seqcritic.settings.data import PairFiles
from seqcritic.starting.init import init

TOLERANCE = 0.1
DROPOUTS = (0.1, 0.3)


class PairSet(NamedTuple):
    """A set of pairs: its corpus, how many training pairs, and the widths of its grid."""

    corpus: str
    size: int
    widths: tuple[int, int, int]


SETS = {
    "words-3600": PairSet("cmudict-g2p", 3_600, (64, 128, 256)),
    "sentences-30000": PairSet("tatoeba-de-en", 30_000, (128, 256, 384)),
    "sentences-160000": PairSet("tatoeba-de-en", 160_000, (128, 256, 384)),
}


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/init-grid"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--share", type=float, default=1.0, help="of the schedule that init chooses")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of all runs alike")
    options = parser.parse_args()
    set_up_logging()
    results = {
        name: compare(name, options.data, options.out / name, options.share, options.precision) for name in options.sets
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "grid.json"
    known = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(known | results, indent=1) + "\n", encoding="utf-8")
    print_table(known | results)


def compare(name: str, data: Path, folder: Path, share: float, precision: str) -> dict[str, Any]:
    """Return the test scores of the choice and of the grid on one set."""
    recipe = folder / "recipe.yaml"
    if not recipe.exists():
        files = {split: [str(write_pairs(SETS[name], data, split, folder))] for split in ("train", "valid", "test")}
        told, _ = init(files["train"], recipe, files["valid"], files["test"])
        log.info("\n".join(told))
    chosen = seqcritic.load_recipe(recipe)
    updates = max(1, round(share * chosen.phases.actor.updates))
    schedule = {
        "threads": 1,  # so that two sets can be run side by side
        "precision": precision,
        "method.name": "likelihood",
        "phases.train.updates": 0,
        "phases.actor.updates": updates,
        "training.evaluate_every": max(1, updates // 20),
    }
    points = {"init": (chosen.actor.hidden, chosen.actor.dropout)}
    points |= {f"{width}-{dropout:g}": (width, dropout) for width in SETS[name].widths for dropout in DROPOUTS}
    found: dict[str, Any] = {"share": share, "precision": precision, "updates": updates, "points": {}}
    for label, (width, dropout) in points.items():
        sizes = {f"actor.{size}": width for size in ("embedding", "hidden", "attention")} | {"actor.dropout": dropout}
        out = folder / f"share-{share:g}-{precision}" / label
        seqcritic.train(seqcritic.load_recipe(recipe, schedule | sizes), out)
        result = seqcritic.evaluate(out)
        found["points"][label] = {"width": width, "dropout": dropout, "score": result.score}
        found |= {"score": result.score_name, "lower_is_better": result.score_name != "BLEU"}
    return found


def write_pairs(chosen: PairSet, data: Path, split: str, folder: Path) -> Path:
    """Write so many pairs of a split as .tsv, spread evenly over its files; of valid and test at most 1,000."""
    corpus = data / chosen.corpus
    table = corpus / f"{split}.tsv.gz"
    sides = {side: (str(corpus / f"{split}.{end}.gz"),) for side, end in (("source", "de"), ("target", "en"))}
    pairs = list(read_pairs(PairFiles(pairs=(str(table),)) if table.exists() else PairFiles(**sides), split))
    size = chosen.size if split == "train" else 1_000
    spread = islice(pairs, 0, None, max(1, len(pairs) // size))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}.tsv"
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in islice(spread, size)), encoding="utf-8")
    return path


def distance(result: dict[str, Any]) -> float:
    """Return by how much the choice is worse than the best of the grid, as a share of the best."""
    scores = {label: point["score"] for label, point in result["points"].items()}
    chosen = scores.pop("init")
    best = (min if result["lower_is_better"] else max)(scores.values())
    return float((chosen - best) / best if result["lower_is_better"] else (best - chosen) / best)


def print_table(results: dict[str, Any]) -> None:
    """Print a line for every set."""
    print("| set | score | init | best of the grid | worse by | within 10 % |\n|---|---|---:|---:|---:|---|")
    for name, result in results.items():
        scores = {label: point["score"] for label, point in result["points"].items()}
        chosen = scores.pop("init")
        best = (min if result["lower_is_better"] else max)(scores, key=scores.__getitem__)
        worse = distance(result)
        print(
            f"| {name} | {result['score']} | {chosen:.2f} | {scores[best]:.2f} ({best}) | {100 * worse:.1f} % | "
            f"{'yes' if worse <= TOLERANCE else 'no'} |"
        )


if __name__ == "__main__":
    main()
