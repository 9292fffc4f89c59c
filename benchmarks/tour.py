"""Time and memory of every command of the README's tour.

    python benchmarks/tour.py FOLDER [--short] [--out FILE.json]

Runs the commands as they stand in the README, one after the other, in a folder that must be new or empty, with one
thread a process (`compare` and `ablate` have two processes side by side where there are two cores). Prints a table for
Markdown: wall-clock seconds, and the most resident memory that a single process of the command had; and the README's
commands with these figures in their comments, to be put in their place. `--short` changes
settings so that the whole takes a minute or two: it shows that the tour works, its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from side_by_side.machine import OtherLoad, describe, warning

ROOT = Path(__file__).parents[1]
HEADING = "## A tour"
PHASES = {"actor": 30, "critic": 10, "train": 10}
TRAINING = " ".join(f"phases.{phase}.updates={updates}" for phase, updates in PHASES.items())
SHORT = {
    **dict.fromkeys(("train", "compare", "ablate"), f"{TRAINING} training.evaluate_every=10 data.valid_size=20"),
    "diagnose": "--examples 4 --draws 40",
}
"""What is added to a command, by its name, to have it done soon."""


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    command: str
    seconds: float
    megabytes: float


def tour_block(readme: str) -> str:
    """Return the tour's commands as they stand in the README, with what is said of them."""
    block = re.search(rf"^{HEADING}\n+```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    if block is None:
        raise SystemExit(f"README.md has no commands under '{HEADING}'")
    return block[1]


def tour_commands(block: str) -> list[str]:
    """Return the commands of the tour, without what is said of them; one stands on one line."""
    lines = [line.partition(" #")[0].strip() for line in block.splitlines() if not line.startswith("#")]
    return [line for line in lines if "seqcritic " in line]


def with_figures(block: str, costs: list[Cost]) -> str:
    """Return the block with what each command took in its comment, in the place of older figures."""
    found = {cost.command: ", ".join(cells(cost)) for cost in costs}
    lines = []
    for line in block.splitlines():
        command, _, comment = line.partition(" #")
        if command.strip() in found:
            comment = re.sub(r"^[\d.]+ (s|min), [\d,]+ MB(; )?", "", comment.strip())
            line = f"{command.rstrip()}  # {'; '.join(filter(None, (found[command.strip()], comment)))}"
        lines.append(line)
    return "\n".join(lines)


def shortened(command: str) -> str:
    """Return a command with what has it done soon."""
    [name] = re.findall(r"seqcritic (\w+)", command)
    return f"{command} {SHORT[name]}" if name in SHORT else command


def measure(command: str, folder: Path) -> Cost:
    """Run a command in a folder to its end; return what it took. It ends this process if it fails."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    # The `seqcritic` of the environment that this runs in, wherever it was called from.
    found = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    began = time.perf_counter()
    with subprocess.Popen(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env=os.environ | threads | found,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None, "it is a pipe"
        said = process.stderr.read()
        # Of this child and of those it waited for; RUSAGE_CHILDREN would tell the most of all commands so far. A child
        # begins with the memory of its parent, so this script imports nothing large.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}\nended with {process.returncode}:\n{said}")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes on Linux
    return Cost(command, seconds, usage.ru_maxrss / unit)


def table(costs: list[Cost]) -> str:
    """Return the costs as a table for Markdown."""
    rows = [f"| `{cost.command.replace('|', chr(92) + '|')}` | {' | '.join(cells(cost))} |" for cost in costs]
    return "\n".join(["| command | time | memory |", "|---|---:|---:|", *rows])


def cells(cost: Cost) -> tuple[str, str]:
    """Return time and memory of a command as people read them."""
    seconds = cost.seconds
    taken = f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    return taken, f"{cost.megabytes:,.0f} MB"


def main() -> int:
    """Run the tour; print the table, the machine, and whether others were at work on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the tour makes its runs; new or empty")
    parser.add_argument("--short", action="store_true", help="only show that it works")
    parser.add_argument("--out", type=Path, help="write the figures as JSON too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if any(options.folder.iterdir()):
        raise SystemExit(f"{options.folder} is not empty: a run that is there would be resumed, and cost nothing")
    block = tour_block((ROOT / "README.md").read_text(encoding="utf-8"))
    load, costs = OtherLoad(), []
    for command in tour_commands(block):
        found = measure(shortened(command) if options.short else command, options.folder)
        costs.append(replace(found, command=command))
        print(f"{', '.join(cells(found))}: {found.command}", file=sys.stderr, flush=True)
    others = load.cores()
    machine: dict[str, Any] = {**describe(), "threads": 1, "other_load_cores": others}
    print(table(costs))
    print(f"\n{with_figures(block, costs)}\n\nmachine: {json.dumps(machine)}")
    if told_load := warning(others):
        print(told_load, file=sys.stderr)
    if options.out is not None:
        written = {"short": options.short, "machine": machine, "commands": [asdict(cost) for cost in costs]}
        options.out.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
