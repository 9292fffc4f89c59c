"""What docs/scaling.md predicts for WMT14 on GPUs, from counts of the recipe's own sizes and stated rates.

    python benchmarks/wmt14_on_gpus.py [--gpus 8] [--batch 80]

Nothing here is measured on a GPU. Products, bytes and kernels are counted; the rates below are assumptions.
"""

from __future__ import annotations

import argparse

from seqcritic.settings.io import load_recipe

PAIRS = 12_000_000
VOCABULARY = 30_000
LENGTH = 30  # tokens of a sentence, on average
LONGEST = 50  # steps of a loop: those of the longest sentence of a batch
PRODUCTS_A_SECOND = 125e12  # floating-point operations in bfloat16: two fifths of an A100's
BYTES_A_SECOND = 1.5e12  # of a GPU's memory
KERNEL_SECONDS = 6e-6  # to start one, which the step after it waits for
LINKS = {"NVLink": 200e9, "PCIe": 20e9}  # bytes a second of an all-reduce on a ring
KERNELS = {"forward": 25, "backward": 50, "sampling": 40}  # of one step of a loop
# Passes of one update over its tokens: (forward without a graph, forward and backward, sampled).
PASSES = {"likelihood": (0, 1, 0), "actor-critic+likelihood": (2, 3, 1)}
READS_OF_OUTPUTS = {"likelihood": 8, "actor-critic+likelihood": 30}  # passes over arrays of tokens × vocabulary


def operations_of_token(embedding: int, hidden: int, attention: int) -> float:
    """Return the floating-point operations of a forward pass for one source and one target token."""
    memory = 2 * hidden
    output_layer = (hidden + memory) * VOCABULARY
    decoder = 3 * hidden * (hidden + memory + embedding) + hidden * attention + LENGTH * (attention + memory)
    encoder = 2 * 3 * hidden * (embedding + hidden) + memory * attention
    return 2.0 * (output_layer + decoder + encoder)


def parameters_of_network(embedding: int, hidden: int, attention: int, embeddings: int) -> float:
    """Return the number of weights of an actor (two embeddings) or a critic (one, and it reads actor states)."""
    memory = 2 * hidden
    extra = hidden if embeddings == 1 else 0
    gates = 3 * hidden * (hidden + memory + embedding + extra) + hidden * attention + memory * attention
    encoder = 2 * 3 * hidden * (embedding + hidden)
    return float(embeddings * VOCABULARY * embedding + (hidden + memory) * VOCABULARY + gates + encoder)


def seconds_of_update(label: str, gpus: int, batch: int, link: float) -> dict[str, float]:
    """Return what an update takes, part by part."""
    actor = load_recipe("wmt14-en-fr").actor
    sizes = (actor.embedding, actor.hidden, actor.attention)
    tokens = batch * LENGTH
    without, with_graph, sampled = PASSES[label]
    steps = LONGEST * (
        KERNELS["sampling"] * sampled
        + KERNELS["forward"] * (without - sampled)
        # Samples and references of the actor go through one loop.
        + (KERNELS["forward"] + KERNELS["backward"]) * min(with_graph, 2)
    )
    weights = parameters_of_network(*sizes, 2) + (parameters_of_network(*sizes, 1) if with_graph > 1 else 0)
    return {
        "products": (without + 3 * with_graph) * operations_of_token(*sizes) * tokens / PRODUCTS_A_SECOND,
        "outputs in memory": READS_OF_OUTPUTS[label] * tokens * VOCABULARY * 4 / BYTES_A_SECOND,
        "starting kernels": steps * KERNEL_SECONDS,
        "Adam and target networks": weights * 40 / BYTES_A_SECOND,
        "all-reduce": 2 * (gpus - 1) / gpus * weights * 4 / link,
    }


def main() -> None:
    """Print one table a method and link."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--batch", type=int, default=80)
    options = parser.parse_args()
    print(
        "| method | link | " + " | ".join(seconds_of_update("likelihood", 1, 1, 1)) + " | update, ms | hours a pass |"
    )
    print("|---|---|" + "---|" * 7)
    for label in PASSES:
        for name, link in LINKS.items():
            parts = seconds_of_update(label, options.gpus, options.batch, link)
            update = sum(parts.values())
            hours = PAIRS / (options.gpus * options.batch) * update / 3600
            figures = " | ".join(f"{1000 * part:.0f}" for part in parts.values())
            print(f"| {label} | {name} | {figures} | {1000 * update:.0f} | {hours:.2f} |")


if __name__ == "__main__":
    main()
