"""What a critic of a large vocabulary costs: every token valued, columns alone, and columns by the actor's vectors.

    python benchmarks/large_vocabularies.py [--sizes 32000 250000] [--updates 5]

One update is forward and backward pass of policy evaluation's regression, Adam's step and the target critic's. Each row
is measured in a process of its own, on one thread: median seconds of an update, its peak memory above what the process
held before the critic was built, and how many numbers the critic learns.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import statistics
import subprocess
import sys
import time

import torch

from seqcritic.contracts.networks import polyak_update
from seqcritic.data.vocabulary import END
from seqcritic.methods.masked_losses import chosen_values_and_penalties
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.tensors.values import Columns
from seqcritic.training.learner import adam

FORMS: dict[str, dict[str, object]] = {
    "every token": {},
    "columns": {"columns": 1000},
    "columns, the actor's vectors": {"columns": 1000, "embeddings": "actor"},
}
SIZES = {"embedding": 256, "hidden": 256, "attention": 256}
EXAMPLES, LENGTH, NUM_COLUMNS = 16, 25, 1000


def measure(form: str, num_tokens: int, updates: int) -> dict[str, float]:
    """Return seconds, megabytes and millions of learned numbers of one form of critic."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    settings = GruActorSettings(**SIZES, output_width=512)
    actor = RecurrentActor(settings, 100, num_tokens, generator).requires_grad_(False)
    before = _peak()
    critic = RecurrentCritic.build(
        GruCriticSettings(**SIZES, reads_actor_states=False, **FORMS[form]),  # type: ignore[arg-type]
        actor,
        generator,
    )
    target, optimiser = copy.deepcopy(critic).requires_grad_(False), adam(critic.parameters())
    tokens = torch.randint(1, num_tokens, (EXAMPLES, LENGTH), generator=generator)
    references = torch.randint(1, num_tokens, (EXAMPLES, LENGTH), generator=generator)
    references[:, -1] = END
    mask, views = torch.ones_like(tokens, dtype=torch.bool), torch.zeros(EXAMPLES, LENGTH, settings.hidden)
    targets = torch.randn(EXAMPLES, LENGTH, generator=generator)
    seconds = []
    for _ in range(updates):
        start = time.perf_counter()
        columns = None
        if critic.num_columns is not None:
            drawn = torch.randint(1, num_tokens, (NUM_COLUMNS,), generator=generator)
            columns = Columns(torch.cat([references.flatten(), drawn]).unique()[:NUM_COLUMNS], num_tokens)
        with torch.no_grad():
            target.masked_values(target.encode(references, mask), tokens, views, mask, columns)
        values = critic.masked_values(critic.encode(references, mask), tokens, views, mask, columns)
        chosen, penalties = chosen_values_and_penalties(values, tokens)
        optimiser.zero_grad()
        ((chosen - targets).square() + 1e-3 * penalties).mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        polyak_update(target, critic, 0.01)
        seconds.append(time.perf_counter() - start)
    learned = sum(weight.numel() for weight in critic.parameters())
    return {"seconds": statistics.median(seconds), "megabytes": _peak() - before, "millions": learned / 1e6}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kilobytes on Linux


def main() -> None:
    """Print a table, each row measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32_000, 250_000])
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.sizes[0], options.updates)))
        return
    print("| tokens | critic | ms an update | peak MB | million weights |\n|---:|---|---:|---:|---:|")
    for size in options.sizes:
        for form in FORMS:
            command = [sys.executable, __file__, "--one", form, "--sizes", str(size), "--updates", str(options.updates)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            cost = f"{1000 * found['seconds']:,.0f} | {found['megabytes']:,.0f} | {found['millions']:.1f}"
            print(f"| {size:,} | {form} | {cost} |", flush=True)


if __name__ == "__main__":
    main()
