"""Memory and start-up time of the translation data at the size of WMT14: the claims of docs on large training sets.

    python benchmarks/parallel_data.py [--pairs 12000000] [--kind whitespace|words|subwords] [--folder DIR]

Writes synthetic pairs of 10 to 40 tokens (25 on average, words by Zipf's law), then learns the vocabularies and encodes
in one process, starts anew in another that draws 200 training batches, and in a third trains a small actor by
likelihood for some updates. Each process tells the peak of its own resident memory (VmHWM, which counts mapped pages
too; Linux only). Start-up is from the first line of Python to the first batch, imports included; where other processes
have the machine, its CPU seconds tell more. The full size needs 5 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STARTED = time.perf_counter()
CHUNK = 50_000
SHORTEST, LONGEST = 10, 40
BATCH, NUM_BATCHES = 128, 200
NUM_VALID = 100
UNITS, TRAINING_BATCH, NUM_UPDATES = 64, 32, 20


def main() -> None:
    """Write the text, run the three processes, print one table."""
    options = read_options()
    if options.step == "write":
        return write_text(options.folder, options.pairs, options.types)
    if options.step:
        return print(json.dumps(train_a_little(options) if options.step == "train" else measure(options)))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        command = [sys.executable, __file__, "--pairs", str(options.pairs), "--types", str(options.types)]
        command += ["--kind", options.kind, "--folder", folder, "--step"]
        subprocess.run([*command, "write"], check=True)
        encode, start, train = (
            json.loads(subprocess.run([*command, step], check=True, stdout=subprocess.PIPE).stdout)
            for step in ("encode", "start", "train")
        )
        text, cache = (
            sum(path.stat().st_size for path in Path(folder).rglob(pattern)) for pattern in ("*.txt", "cache/*/*.*s")
        )
    load = os.getloadavg()[0]
    print(f"# {options.pairs:,} pairs, {options.kind}, batches of {BATCH}; load average {load:.1f}")
    print("| | seconds | CPU seconds | peak resident MB |\n|---|---:|---:|---:|")
    batches = {name: start[name] - start[f"{name}_at_first"] for name in ("seconds", "cpu")} | {"peak": start["peak"]}
    for name, figures in (
        ("learn vocabularies and encode, once", encode),
        ("start once cached, to the first batch", {key: start[f"{key}_at_first"] for key in batches}),
        (f"{NUM_BATCHES} batches more", batches),
        (f"{NUM_UPDATES} updates of a small actor", train),
        ("import of the package alone", {key: start[f"{key}_of_imports"] for key in batches}),
    ):
        print(f"| {name} | {figures['seconds']:.1f} | {figures['cpu']:.1f} | {figures['peak']:.0f} |")
    print(f"\ntext {text / 1e6:,.0f} MB, cache {cache / 1e6:,.0f} MB, padding {100 * start['padding']:.1f} %")


def read_options() -> argparse.Namespace:
    """Return the command line's options; `--step` is for the processes this one starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=12_000_000)
    parser.add_argument("--types", type=int, default=1_000_000, help="different words a side")
    parser.add_argument("--kind", choices=("whitespace", "words", "subwords"), default="whitespace")
    parser.add_argument("--folder", type=Path, help="where the text and the cache are put for the time being")
    parser.add_argument("--step", choices=("write", "encode", "start", "train"), help=argparse.SUPPRESS)
    return parser.parse_args()


def write_text(folder: Path, num_pairs: int, num_types: int) -> None:
    """Write both sides; the target has the source's length give or take a few words."""
    import numpy as np

    generator = np.random.default_rng(1)
    cumulative = np.cumsum(1 / np.arange(1, num_types + 1))
    cumulative /= cumulative[-1]
    with (folder / "source.txt").open("w") as source, (folder / "target.txt").open("w") as target:
        for first in range(0, num_pairs, CHUNK):
            lengths = generator.integers(SHORTEST, LONGEST + 1, min(CHUNK, num_pairs - first))
            others = np.clip(lengths + generator.integers(-4, 5, len(lengths)), SHORTEST, LONGEST)
            for letter, stream, sizes in (("s", source, lengths), ("t", target, others)):
                words = np.searchsorted(cumulative, generator.random(int(sizes.sum()))).tolist()
                place = 0
                for size in sizes.tolist():
                    stream.write(" ".join([f"{letter}{word}" for word in words[place : place + size]]) + "\n")
                    place += size


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Encode if nothing is cached, draw batches if something is, and return seconds and megabytes."""
    from seqcritic.data.pairs import PairsFromFiles
    from seqcritic.progress import set_up_logging
    from seqcritic.settings.data import TranslationSettings

    measured = {f"{name}_of_imports": figure for name, figure in spent().items()}
    settings = TranslationSettings.model_validate(data_settings(options))
    set_up_logging()
    data = PairsFromFiles(
        settings, options.folder / "cache", level=logging.INFO if options.step == "encode" else logging.DEBUG
    )
    if options.step == "encode":
        assert len(data.training_pairs) > 0
    else:
        padding = places = 0
        for number in range(NUM_BATCHES + 1):
            batch = data.training_batch(number * BATCH, BATCH, 1)
            for mask in (batch.source_mask, batch.reference_mask):
                padding += int((~mask).sum())
                places += mask.numel()
            if number == 0:
                measured |= {f"{name}_at_first": figure for name, figure in spent().items()}
        measured["padding"] = padding / places
    return measured | spent()


def data_settings(options: argparse.Namespace) -> dict[str, object]:
    """Return the settings of the task."""
    tokens = {"kind": options.kind, "size": 30_000}
    files = {side: str(options.folder / f"{side}.txt") for side in ("source", "target")}
    return {"task": "translation", "train": files, "source_tokens": tokens, "target_tokens": tokens}


def train_a_little(options: argparse.Namespace) -> dict[str, float]:
    """Train a small actor on what is cached; the networks' own memory grows with their sizes and is not the data's."""
    os.environ["SEQCRITIC_CACHE"] = str(options.folder / "cache")
    from seqcritic.settings.io import settings_from
    from seqcritic.training.train import train

    valid = {}
    for side in ("source", "target"):
        with (options.folder / f"{side}.txt").open() as lines:
            path = options.folder / f"valid-{side}.txt"
            path.write_text("".join(line for _, line in zip(range(NUM_VALID), lines, strict=False)))
        valid[side] = str(path)
    phases = {"actor": {"updates": NUM_UPDATES}, "critic": {"updates": 0}, "train": {"updates": 0}}
    tree = {
        "data": data_settings(options) | {"valid": valid},
        "actor": {"embedding": UNITS, "hidden": UNITS, "attention": UNITS},
        "score": {"name": "bleu"},
        "method": {"name": "likelihood"},
        "phases": phases,
        "training": {"batch": TRAINING_BATCH},
    }
    train(settings_from(tree), options.folder / "run")
    return spent()


def spent() -> dict[str, float]:
    """Return what this process has used so far: time by the clock and of the processor, and memory."""
    return {"seconds": time.perf_counter() - STARTED, "cpu": time.process_time(), "peak": peak_megabytes()}


def peak_megabytes() -> float:
    """Return the largest resident memory this process has had; not getrusage's, which inherits the parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("this system does not tell the peak of resident memory")


if __name__ == "__main__":
    main()
