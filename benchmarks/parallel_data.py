"""Memory and start-up time of the translation data at the size of WMT14: the claims of docs on large training sets.

    python benchmarks/parallel_data.py [--pairs 12000000] [--kind whitespace|words|subwords] [--folder DIR]

Writes synthetic pairs of 10 to 40 tokens (25 on average, words by Zipf's law), then learns the vocabularies and encodes
in one process, and starts anew in another that draws 200 training batches. Each process tells the peak of its own
resident memory (VmHWM, which counts mapped pages too; Linux only). Start-up is from the first line of Python to the
first batch, imports included. The full size needs 5 GB of disk.
"""

from __future__ import annotations

import argparse
import json
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


def main() -> None:
    """Write the text, run the two processes, print one table."""
    options = read_options()
    if options.step == "write":
        return write_text(options.folder, options.pairs, options.types)
    if options.step:
        return print(json.dumps(measure(options)))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        command = [sys.executable, __file__, "--pairs", str(options.pairs), "--types", str(options.types)]
        command += ["--kind", options.kind, "--folder", folder, "--step"]
        subprocess.run([*command, "write"], check=True)
        encode, start = (
            json.loads(subprocess.run([*command, step], check=True, stdout=subprocess.PIPE).stdout)
            for step in ("encode", "start")
        )
        text, cache = (
            sum(path.stat().st_size for path in Path(folder).rglob(pattern)) for pattern in ("*.txt", "*.*s")
        )
    load = os.getloadavg()[0]
    print(f"# {options.pairs:,} pairs, {options.kind}, batches of {BATCH}; load average {load:.1f}")
    print("| | seconds | peak resident MB |\n|---|---:|---:|")
    print(f"| learn vocabularies and encode, once | {encode['seconds']:.1f} | {encode['peak']:.0f} |")
    print(f"| start once cached, to the first batch | {start['first']:.2f} | {start['peak_at_first']:.0f} |")
    print(f"| {NUM_BATCHES} batches more | {start['seconds'] - start['first']:.2f} | {start['peak']:.0f} |")
    print(f"| import of the package alone | {start['imports']:.2f} | {start['peak_of_imports']:.0f} |")
    print(f"\ntext {text / 1e6:,.0f} MB, cache {cache / 1e6:,.0f} MB, padding {100 * start['padding']:.1f} %")


def read_options() -> argparse.Namespace:
    """Return the command line's options; `--step` is for the processes this one starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=12_000_000)
    parser.add_argument("--types", type=int, default=1_000_000, help="different words a side")
    parser.add_argument("--kind", choices=("whitespace", "words", "subwords"), default="whitespace")
    parser.add_argument("--folder", type=Path, help="where the text and the cache are put for the time being")
    parser.add_argument("--step", choices=("write", "encode", "start"), help=argparse.SUPPRESS)
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
    from seqcritic.data.translation import TranslationData
    from seqcritic.data_settings import TranslationSettings

    measured = {"imports": time.perf_counter() - STARTED, "peak_of_imports": peak_megabytes()}
    tokens = {"kind": options.kind, "size": 30_000}
    files = {"source": str(options.folder / "source.txt"), "target": str(options.folder / "target.txt")}
    settings = TranslationSettings.model_validate({"train": files, "source_tokens": tokens, "target_tokens": tokens})
    report = (lambda line: print(line, file=sys.stderr, flush=True)) if options.step == "encode" else lambda line: None
    data = TranslationData(settings, report, options.folder / "cache")
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
                measured |= {"first": time.perf_counter() - STARTED, "peak_at_first": peak_megabytes()}
        measured["padding"] = padding / places
    return measured | {"seconds": time.perf_counter() - STARTED, "peak": peak_megabytes()}


def peak_megabytes() -> float:
    """Return the largest resident memory this process has had; not getrusage's, which inherits the parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("this system does not tell the peak of resident memory")


if __name__ == "__main__":
    main()
