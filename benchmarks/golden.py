"""Golden trajectories: what every method computes, update by update, kept as JSON in tests/golden.

    python benchmarks/golden.py            # compare with the files, as tests/test_golden.py does
    python benchmarks/golden.py --write    # write them anew: only when the numbers are meant to change

Each method and each mixture trains in float64 on a tiny spelling task, once without dropout and once with 0.2: some
updates of actor and critic, then 30 of the method. Kept are all measurements of every update, and of every weight of
every network its sum, its norm and eight fixed entries. A change of the code that is meant to change nothing must
repeat them.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from seqcritic.settings.io import settings_from
from seqcritic.settings.methods import MIXED, method_labels
from seqcritic.training.train import train

FOLDER = Path(__file__).parent.parent / "tests" / "golden"
TOLERANCE = 1e-9
DROPOUTS = (0.0, 0.2)
WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "then", "it", "went", "to", "see", "some", "old", "friends")
WORDS += ("by", "a", "river", "in", "spring")
UNCOUNTED = ("phase", "kind", "update", "total_updates", "seconds", "cost")  # not numbers that a method computes
NUM_ENTRIES = 8


def settings_tree(label: str, dropout: float, text: Path) -> dict[str, Any]:
    """Return the recipe of one trajectory."""
    name, mixed, _ = label.partition(MIXED)
    sizes = {"embedding": 6, "hidden": 7, "attention": 5, "dropout": dropout, "initial_range": None}
    split = str(text)
    return {
        "name": "golden",
        "precision": "float64",
        "data": {"train": split, "valid": split, "test": split, "length": 6, "valid_size": 10, "test_size": 10},
        "actor": sizes,
        "critic": sizes,
        "method": {
            "name": name,
            "likelihood_weight": 0.1 if mixed else 0.0,
            "reward_dropout": "held",
            "gamma_theta": 0.2,
            "gamma_phi": 0.2,
        },
        "phases": {
            "actor": {"updates": 10, "learning_rate": 0.01},
            "critic": {"updates": 10, "learning_rate": 0.01},
            "train": {"updates": 30, "learning_rate": 0.003},
        },
        "training": {"batch": 6, "evaluate_every": 50, "log_every": 1, "checkpoint_seconds": 3600},
    }


def trajectory(label: str, dropout: float) -> dict[str, Any]:
    """Train, and return the measurements of every update and the figures of all weights."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, run = folder / "text.txt", folder / "run"
        randomness = random.Random(1)
        lines = (" ".join(randomness.choices(WORDS, k=randomness.randint(3, 9))) for _ in range(200))
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        train(settings_from(settings_tree(label, dropout, text)), run)
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        newest = sorted((run / "checkpoints").glob("[0-9]*"))[-1]
        weights = load_file(newest / "networks.safetensors")
    return {
        "updates": [
            {key: value for key, value in record.items() if key not in UNCOUNTED and isinstance(value, float)}
            for record in records
            if record["kind"] == "train"
        ],
        "weights": {name: figures(tensor) for name, tensor in sorted(weights.items())},
    }


def figures(tensor: torch.Tensor) -> list[float]:
    """Return the sum, the norm and eight entries, spread evenly, of a tensor."""
    flat = tensor.double().flatten()
    positions = torch.linspace(0, len(flat) - 1, min(NUM_ENTRIES, len(flat))).long()
    return [flat.sum().item(), flat.norm().item(), *flat[positions].tolist()]


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Name every place where two trees of numbers differ by more than the tolerance, or in their shape."""
    if isinstance(expected, dict) and isinstance(found, dict) and set(expected) == set(found):
        for key in expected:
            yield from differences(expected[key], found[key], f"{place}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, f"{place}/{number}")
    elif not isinstance(expected, float) or not isinstance(found, float):
        yield f"{place}: {expected} is now {found}"
    elif not abs(expected - found) <= TOLERANCE * max(1.0, abs(expected)):
        yield f"{place}: {expected!r} is now {found!r}"


def path_of(label: str, dropout: float) -> Path:
    """Return the file of one trajectory."""
    return FOLDER / f"{label}-dropout-{dropout:g}.json"


def main() -> int:
    """Compare with the files, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files anew")
    arguments = parser.parse_args()
    logging.getLogger("seqcritic").setLevel(logging.ERROR)
    num_wrong = 0
    for label in method_labels():
        for dropout in DROPOUTS:
            found, path = trajectory(label, dropout), path_of(label, dropout)
            if arguments.write:
                path.parent.mkdir(exist_ok=True)
                lines = json.dumps(found).replace('}, {"', '},\n{"').replace('], "', '],\n"')
                path.write_text(lines + "\n", encoding="utf-8")
                continue
            wrong = list(differences(json.loads(path.read_text(encoding="utf-8")), found))
            num_wrong += bool(wrong)
            print(f"{path.name}: {wrong[0] if wrong else 'the same'}" + (f" (+{len(wrong) - 1})" if wrong[1:] else ""))
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
