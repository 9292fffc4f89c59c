"""What critics know of the tokens they choose between, as a small file: one row for each run.

    python benchmarks/evidence/token_values.py TITLE=CRITIC=RUN … --out docs/results/gradients/token-values.json

The figures are those of `seqcritic diagnose` (seqcritic/methods/token_values.py), on 128 validation examples, for a
run of the critic's pre-training; beside them stands what the run of joint training that started from it came to. Where
there was none, RUN is left empty.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch

import trials
from seqcritic.analysis.diagnose import evaluate_token_values
from seqcritic.analysis.diagnosis_input import load_diagnosis_input
from seqcritic.comparing.gather import critic_curve

NUM_EXAMPLES = 128


def _describe_critic(title: str, critic: Path) -> dict[str, object]:
    """Return what is told of a critic that no actor has followed."""
    curve = critic_curve(title, critic)
    assert curve is not None, f"{critic} has no critic"
    return {"title": title, "critic_updates": curve.points[-1].updates, "critic_explains": curve.points[-1].score}


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="TITLE=CRITIC=RUN")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for title, critic, run in (given.rsplit("=", 2) for given in options.runs):
        values = evaluate_token_values(load_diagnosis_input(critic, "valid", NUM_EXAMPLES))
        told = trials.describe(title, Path(run)) if run else _describe_critic(title, Path(critic))
        rows.append(told | asdict(values))
        print(rows[-1], flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
