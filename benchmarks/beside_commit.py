"""Whether a change made anything slower: the claims on speed, measured by an older commit and by this tree in turns.

    python benchmarks/beside_commit.py COMMIT FOLDER [--effort 0.3] [--only training_step,beam_speed]

The commit is cloned into FOLDER and gets an environment of its own; each claim is then measured by its bench.py and by
ours, one after the other, so that what the machine does meanwhile falls on both alike. Reports that are there are not
made again: stopped at any time, the same command goes on. Both are ratios to the same peers, and what is told is the
ratio of these ratios. Printed is a table; FOLDER/beside.json has it with the commits. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TOLERANCE = 0.05
# What both sides can measure; what only one of them has cannot have become slower.
CLAIMS = ("training_step", "actor_critic_step", "reinforce_step", "beam_speed", "greedy_evaluation", "step_memory")


def prepare(commit: str, folder: Path) -> Path:
    """Clone the commit and install it as its own Makefile does; return the clone."""
    clone = folder / commit
    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", commit], check=True)
    subprocess.run(["make", "--directory", str(clone), ".venv/.installed"], check=True)
    return clone


def report(tree: Path, python: Path, claim: str, path: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows that one side measures for a claim, from its file if it is there."""
    if not path.exists():
        unfinished = path.with_suffix(".part")
        command = [str(python), "benchmarks/bench.py", "--only", claim, "--effort", str(options.effort)]
        # One set of peers for both sides: the same programs, installed once.
        command += ["--cache", str(options.folder.resolve() / "peers"), "--out", str(unfinished.resolve())]
        subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)
        unfinished.rename(path)
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return rows


def compare(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each claim of both sides: its two figures, and by how much the later one is better.

    `better` is 1 where nothing changed and above 1 where the later figure is better: for a claim that is to be at least
    something the later over the earlier figure, for one that is to be at most something the reverse.
    """
    known = {_key(row): row for row in after}
    rows = []
    for earlier in before:
        later = known.get(_key(earlier))
        if later is not None:
            better = later["measured"] / earlier["measured"]
            rows.append(
                {key: earlier[key] for key in ("claim", "threads", "unit")}
                | {"before": earlier["measured"], "after": later["measured"]}
                | {"better": better if earlier["sense"] == "at least" else 1 / better}
            )
    return rows


def _key(row: dict[str, Any]) -> tuple[str, int]:
    # Behind "against" stands the better of several peers, which may be another one each time.
    return row["claim"].partition(", against ")[0], row["threads"]


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown, what became slower than is allowed marked."""
    lines = ["| claim | threads | before | after | better by |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        mark = " (slower)" if row["better"] < 1 - TOLERANCE else ""
        before, after = (f"{row[side]:.2f}{row['unit']}" for side in ("before", "after"))
        lines.append(f"| {row['claim']} | {row['threads']} | {before} | {after} | {row['better']:.3f}{mark} |")
    return "\n".join(lines)


def commit_of(tree: Path) -> str:
    """Return the commit that a tree stands at."""
    told = subprocess.run(["git", "-C", str(tree), "rev-parse", "--short", "HEAD"], check=True, capture_output=True)
    return told.stdout.decode().strip()


def main() -> None:
    """Measure what is not measured yet, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--effort", type=float, default=0.3)
    parser.add_argument("--only", default=",".join(CLAIMS))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    clone = prepare(options.commit, options.folder)
    sides = {"before": (clone, clone.resolve() / ".venv/bin/python"), "after": (ROOT, Path(sys.executable))}
    rows = []
    for claim in options.only.split(","):
        found = [
            report(tree, python, claim, options.folder / f"{side}-{claim}.json", options)
            for side, (tree, python) in sides.items()
        ]
        rows += compare(*found)
    content = {"before": commit_of(clone), "after": commit_of(ROOT), "effort": options.effort, "rows": rows}
    (options.folder / "beside.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
