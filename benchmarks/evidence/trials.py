"""What was tried, as a small file: runs that change a few settings, with their validation scores.

    python benchmarks/evidence/trials.py TITLE=RUN … --out docs/results/STUDY/trials.json

For each run: the updates of its critic before joint training and the share of variance that it explained there, the
updates of joint training, the best and last validation score, and what samples returned and the policy's entropy, at
first and in the end (means over the updates between two records). Nothing here is evaluated on test.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from seqcritic.comparing.gather import explained_at_start
from seqcritic.evaluation.evaluate import build_score
from seqcritic.training.checkpoint import read_description
from seqcritic.training.model import find_weights
from seqcritic.training.run_folder import read_settings
from seqcritic.training.tracking import read_metrics


def describe(title: str, run: Path) -> dict[str, object]:
    """Return what is told of one run."""
    settings = read_settings(run)
    records = [record for record in read_metrics(run) if record["phase"] == "train"]
    scores = [record["valid_score"] for record in records if record["kind"] == "valid"]
    sampled = [record for record in records if "sampled_return" in record]
    critic = settings.start.critic
    own = settings.phases.critic.updates if settings.method.needs_critic else 0
    lower_is_better = not build_score(settings).higher_is_better
    return {
        "title": title,
        "method": settings.method.label,
        "seed": settings.seed,
        "critic_updates": read_description(find_weights(critic))["progress"]["total_updates"] if critic else own,
        "critic_explains": explained_at_start([run]),
        "updates": settings.phases.train.updates,
        "evaluations": len(scores),
        "lower_is_better": lower_is_better,
        "first": scores[0],
        "best": min(scores) if lower_is_better else max(scores),
        "last": scores[-1],
        "returns": [sampled[end]["sampled_return"] for end in (0, -1)] if sampled else None,
        "entropies": [sampled[end]["policy_entropy"] for end in (0, -1)] if sampled else None,
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="TITLE=RUN")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    rows = [describe(title, Path(run)) for title, _, run in (given.rpartition("=") for given in options.runs)]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
