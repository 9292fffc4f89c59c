"""What an update of each method costs relative to a likelihood update: the figures of `compare.costs`.

    python benchmarks/update_cost.py RECIPE [section.key=value …]

All methods as `compare` measures those that it runs (seqcritic/training/calibration.py), with a longer warm-up and more
rounds.
"""

from __future__ import annotations

import os
import sys

from seqcritic.data.task import build_task
from seqcritic.progress import set_up_logging
from seqcritic.settings.io import load_recipe
from seqcritic.settings.methods import typical_costs
from seqcritic.training.calibration import UNIT, measure_seconds

WARM_UP_UPDATES = 600
ROUNDS = 60


def main() -> None:
    """Print one line a method."""
    set_up_logging()
    settings = load_recipe(sys.argv[1], sys.argv[2:])
    task = build_task(settings.data)
    seconds = measure_seconds(settings, list(typical_costs()), task, WARM_UP_UPDATES, ROUNDS)
    load = os.getloadavg()[0]
    print(f"# {settings.name}: threads {settings.threads}, {ROUNDS} rounds, load average {load:.1f}")
    for label, median in seconds.items():
        print(f"    {label}: {median / seconds[UNIT]:.2f}  # {1000 * median:.1f} ms")


if __name__ == "__main__":
    main()
